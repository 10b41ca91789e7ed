# fish completion for heaptop; made by heaptop --completion=fish

complete -c heaptop -x -a '(__fish_complete_subcommand -- -p --pid --name --process -i --input --base -o --output -r --rate --overhead -D --duration --delay-start --alloc --free --realloc --preset -d --delay -n --iterations -s --sort --value -f --filter -T --thread --view --fail-if --on-exit --io --columns --graph --theme --copy --config --completion --record-stacks)'
complete -c heaptop -s p -l pid -d 'watch running processes: PID[,PID]… (or a name)' -x -a '(__fish_complete_pids)'
complete -c heaptop -l name -d 'watch all processes of that name' -x -a '(__fish_complete_proc)'
complete -c heaptop -l no-follow -d 'not the children of a program'
complete -c heaptop -l process -d 'in -b: sum (default), all, or a PID' -x -a 'sum all'
complete -c heaptop -s i -l input -d 'look at a snapshot (pprof)' -r -F
complete -c heaptop -l base -d 'compare with this snapshot' -r -F
complete -c heaptop -s o -l output -d 'write a snapshot at the end: .pb.gz (pprof), .folded, .txt' -r -F
complete -c heaptop -s r -l rate -d 'mean bytes between samples, or auto (default)' -x -a 'auto'
complete -c heaptop -s e -l exact -d 'record every call'
complete -c heaptop -l mmap -d 'count the program\'s own anonymous mappings, too'
complete -c heaptop -l overhead -d 'what auto may cost the program (default 1%)' -x
complete -c heaptop -s D -l duration -d 'stop after 30s, 5m, …' -x
complete -c heaptop -l delay-start -d 'begin to collect after that' -x
complete -c heaptop -l paused -d 'start with collection off'
complete -c heaptop -l alloc -d 'another allocator\'s function, its size in argument N' -x
complete -c heaptop -l free -d 'what frees such a block' -x
complete -c heaptop -l realloc -d 'what reallocates it: ptr=N,size=N' -x
complete -c heaptop -l preset -d 'those of a known allocator: cpython, glib, apr' -x -a 'cpython glib apr'
complete -c heaptop -s d -l delay -d 'between refreshes (default 1)' -x
complete -c heaptop -s b -l batch -d 'text on standard output, no screen'
complete -c heaptop -s n -l iterations -d 'stop after N frames (implies -b)' -x
complete -c heaptop -l tui -d 'the screen even with -o or into a pipe'
complete -c heaptop -s s -l sort -d 'order of the sites; help lists' -x -a 'live blocks rate calls alloc allocs temp peak delta'
complete -c heaptop -l value -d 'what the flame view and .folded files show' -x -a 'live blocks rate calls alloc allocs temp peak delta'
complete -c heaptop -s f -l filter -d 'only these sites; !REGEX: not these' -x
complete -c heaptop -s T -l thread -d 'only blocks of this thread, or of those of this name' -x
complete -c heaptop -l view -d 'sites, tree, flame or output' -x -a 'sites tree flame output'
complete -c heaptop -l fail-if -d 'exit with 3 if so at the end: live>50M, site~RE, …' -x -a 'live> peak> leaked> growth> blocks> site~'
complete -c heaptop -l on-exit -d 'a signal ends heaptop: kill or detach the program' -x -a 'kill detach'
complete -c heaptop -s x -l exit-with-program -d 'leave when the program ends'
complete -c heaptop -l io -d 'program\'s terminal: pane, inherit, null, FILE, /dev/pts/N' -x -a 'pane inherit null'
complete -c heaptop -l columns -d 'numbers beside the names; help lists' -x -a 'self error percent delta rate blocks average peak allocs temp trend'
complete -c heaptop -l graph -d 'braille, block or ascii' -x -a 'braille block ascii'
complete -c heaptop -l theme -d 'colours: light, contrast, mono, …; help lists' -x -a 'default light contrast mono'
complete -c heaptop -l copy -d 'what y copies to: auto, terminal or file' -x -a 'auto terminal file'
complete -c heaptop -l config -d 'settings, in place of the usual files' -r -F
complete -c heaptop -s C -l no-color -d 'monochrome'
complete -c heaptop -s U -l no-unicode -d 'ASCII only'
complete -c heaptop -s M -l no-mouse -d 'leave the mouse to the terminal'
complete -c heaptop -l doctor -d 'say what works here, what doesn\'t, and why'
complete -c heaptop -l completion -d 'print completions for bash, zsh or fish' -x -a 'bash zsh fish'
complete -c heaptop -l keys -d 'list the keys'
complete -c heaptop -l record-stacks -d 'keep every recorded stack, for benchmarks' -r -F
complete -c heaptop -s q -l quiet -d 'no messages but errors'
complete -c heaptop -s v -l verbose -d 'say more, on standard error'
complete -c heaptop -s h -l help -d 'this text'
complete -c heaptop -s V -l version -d 'version and features'
