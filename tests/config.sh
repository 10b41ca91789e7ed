#!/bin/bash
# Settings files, HEAPTOP_OPTS, --fail-if, --on-exit, --delay-start and the completions of three shells.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
. "$abs_top_srcdir/tests/lib/tmux.sh"
on_exit() { tmux_stop; }
rc=$XDG_CONFIG_HOME/heaptop/heaptoprc
mkdir -p "$XDG_CONFIG_HOME/heaptop"
unset SUDO_UID TMUX STY
export HOME=$tmp
cd "$tmp" || exit 99
"$abs_top_builddir/tests/screen/make_snapshot" "$tmp/heap.pb.gz" || bail_out "no snapshot"

first() { sites "$tmp/out" site | head -n 1; }
# scripted NAME OPTION...: the screen's script of standard input runs
scripted() {
  local name=$1
  shift
  cat >"$tmp/script"
  HEAPTOP_SCRIPT=$tmp/script run 20 "$HEAPTOP" -i heap.pb.gz "$@"
  is "$name" "$status" 0
  [ "$status" = 0 ] || diag_file "$tmp/err" 40
}

# ---- files ----
run 10 "$HEAPTOP" -b -i heap.pb.gz
by_live=$(first)
run 10 "$HEAPTOP" -b -s alloc -i heap.pb.gz
by_alloc=$(first)
isnt "two orders to tell apart" "$by_live" "$by_alloc"
printf '# mine\nsort = alloc\n' >"$rc"
run 10 "$HEAPTOP" -b -i heap.pb.gz
is "a setting counts" "$(first)" "$by_alloc"
run 10 "$HEAPTOP" -b -s live -i heap.pb.gz
is "an option counts more" "$(first)" "$by_live"
HEAPTOP_OPTS='-s live' run 10 "$HEAPTOP" -b -i heap.pb.gz
is "so does HEAPTOP_OPTS" "$(first)" "$by_live"
HEAPTOP_OPTS='-s live' run 10 "$HEAPTOP" -b -s alloc -i heap.pb.gz
is "and the command line most" "$(first)" "$by_alloc"
printf 'sort = live\n' >other
HEAPTOP_CONFIG=$tmp/other run 10 "$HEAPTOP" -b -i heap.pb.gz
is "HEAPTOP_CONFIG names another file" "$(first)" "$by_live"
HEAPTOP_CONFIG=$tmp/other run 10 "$HEAPTOP" -b --config="$rc" -i heap.pb.gz
is "--config yet another" "$(first)" "$by_alloc"
run 10 "$HEAPTOP" -b --config= -i heap.pb.gz
is "or none" "$(first)" "$by_live"
run 10 "$HEAPTOP" -b --config="$tmp/none" -i heap.pb.gz
is "one that isn't there is an error" "$status" 2
like "and said" "$(cat "$tmp/err")" "none: No such file"

HEAPTOP_OPTS="-f '(main|x y)' --thread" run 10 "$HEAPTOP" -b -i heap.pb.gz
is "an argument is missing in HEAPTOP_OPTS" "$status" 2
like "it is said" "$(cat "$tmp/err")" "HEAPTOP_OPTS: '--thread'"
HEAPTOP_OPTS="-q true" run 10 "$HEAPTOP" -b -i heap.pb.gz
like "a program in it isn't run" "$status $(cat "$tmp/err")" "^2 heaptop: HEAPTOP_OPTS: 'true' is no option"
HEAPTOP_OPTS="--filter='Queue.*push' -b" run 10 "$HEAPTOP" -i heap.pb.gz
is "quotes hold together" "$(sites "$tmp/out" site | wc -l)" 1

# nothing wrong in a file stops anybody; the log has it
cat >"$rc" <<'END'
thema = light
delay = never
theme = nosuch
bind nokey = tree
mouse = perhaps
output = /etc/passwd
a line
sort = rate
END
run 10 "$HEAPTOP" -b -i heap.pb.gz
is "a file full of mistakes is no failure" "$status $(cat "$tmp/err")" "0 "
scripted "the log has each of them" <<'END'
size 120x60
key !
expect line 1: thema: there is no such setting
expect line 2: delay: 'never' is no time
expect line 3: theme: 'nosuch' is none of default, light
expect line 4: bind nokey: 'nokey' is no key
expect line 5: mouse: 'perhaps' is neither yes nor no
expect line 6: output: there is no such setting
expect line 7: a line: a line is KEY = VALUE
expect-not line 8
END
head -c 300000 /dev/zero | tr '\0' x >"$rc"
run 10 "$HEAPTOP" -b -i heap.pb.gz
is "nor is a huge one" "$status" 0

printf 'bind x = tree\nbind = = help\nbind 2 = none\ncolumns = blocks\ngraph = ascii\n' >"$rc"
scripted "keys, columns and graph by settings" <<'END'
expect BLOCKS
expect-not TREND
key x
expect [2 Tree]
key 1 2
expect [1 Sites]
key =
expect heaptop shows who holds
END
run 10 "$HEAPTOP" --keys
is "--keys has them, too" "$(awk -F '\t' '$3 == "tree" { print $1 }' "$tmp/out")" x

# the page knows them all, and the elements of themes but for those between the first and the last of a kind
page=$abs_top_srcdir/man/heaptoprc.5
words=$({
  sed -n '/^static const char \*const known/,/^};/p' "$abs_top_srcdir/src/cli_config.c"
  sed -n '/^static const char \*const elements/,/^};/p' "$abs_top_srcdir/ui/theme.c"
} | grep -oE '"[a-z0-9-]+"' | tr -d '"' | grep -vE '^(code|flame)-[1-4]$')
ok "settings and elements were found" test "$(echo "$words" | wc -l)" -gt 50
is "heaptoprc(5) has each" "$(for word in $words; do
  grep -qE "(^| )$word( |,|\$)" "$page" || printf '%s ' "$word"
done)" ""
if have mandoc; then
  is "and is well-formed" "$(mandoc -T lint -W warning "$page" 2>&1)" ""
fi

# ---- the setup saves ----
printf '# my theme\ntheme=mono\n\nbind x = tree # not a comment\nno-mouse = yes\nunknown = 1\n' >"$rc"
chmod 640 "$rc"
save() {
  scripted "$1" <<END
key F2
type s
await $2
END
}
save "settings are saved" "saved $rc"
is "beside what was there" "$(cat "$rc")" "$(printf '# my theme\ntheme = mono\n\nbind x = tree # not a comment\nunknown = 1\ndelay = 1\ncolumns = res,self,error,percent,delta,rate,blocks,average,peak,allocs,temp,age,threads,trend\ngraph = braille\nmouse = no')"
is "with its rights" "$(stat -c %a "$rc")" 640
cp "$rc" kept
export SUDO_UID=$(($(id -u) + 1))
save "not under sudo" "not saved under sudo"
unset SUDO_UID
ok "the file is as it was" cmp -s "$rc" kept
mv "$rc" "$rc.real" && ln -s "$rc.real" "$rc"
save "a link isn't replaced" "a symbolic link"
ok "nor what it leads to" cmp -s "$rc" kept
rm -r "$XDG_CONFIG_HOME"
save "a new file" "saved $rc"
is "no more than needed" "$(ls "$XDG_CONFIG_HOME/heaptop")" heaptoprc
if [ "$(id -u)" = 0 ]; then
  chown 12345 "$rc"
  save "never another's file" "not saved: another user"
  chown 0 "$rc"
fi
rm -f "$rc"

# ---- --fail-if ----
fails() { # NAME CODE ERE OPTION...
  local name=$1 code=$2 ere=$3
  shift 3
  run 30 "$HEAPTOP" "$@"
  is "$name" "$status" "$code"
  like "$name: the line" "$(grep -e fail-if "$tmp/err")" "$ere"
}
fails "true of a snapshot" 3 '^heaptop: --fail-if=live>1M: live is 2\.[0-9]M$' -b --fail-if='live>1M' -i heap.pb.gz
fails "not true" 0 '^$' -b --fail-if='live>1G' -i heap.pb.gz
fails "one of several is enough" 3 '^heaptop: --fail-if=peak>=1K' -b --fail-if='live>1G' --fail-if='peak>=1K' -i heap.pb.gz
fails "by site" 3 'live\(site~png_\)>500K: live is 512.0K$' -b --fail-if='live(site~png_)>500K' -i heap.pb.gz
fails "a site that isn't there" 0 '^$' -b --fail-if='site~nosuch' -i heap.pb.gz
fails "what can't be read" 2 'is no condition|begins with none' -b --fail-if='alive>1' -i heap.pb.gz
scripted "with the screen, too, not true" --fail-if='live>1G' <<<'expect Queue'
printf 'expect Queue\n' >"$tmp/script"
HEAPTOP_SCRIPT=$tmp/script fails "with the screen, true" 3 'live>1M' --fail-if='live>1M' -i heap.pb.gz
if [ -x "$HEAPTOP" ] && "$abs_top_builddir/tests/lib/can-ptrace"; then
  known=$VICTIMS/known
  fails "a program's leak" 3 'leaked>0: leaked is' -q -b --fail-if='leaked>0' "$known"
  fails "its own code counts if nothing is true" 7 '^$' -q -b --fail-if='live>1G' sh -c 'exit 7'
  start "$tmp/sleeper" sleep 100
  victim=$started
  fails "attached" 3 'live<1: live is 0' -q -b -n 1 -d 0.2 --fail-if='live<1' -p "$victim"
  fails "of one that runs leaks can't be said" 1 'leaked>0: not to be said: the program hasn.t ended' \
    -q -b -n 1 -d 0.2 --fail-if='leaked>0' -p "$victim"
  ok "it runs on" kill -0 "$victim"

  # ---- --delay-start, --on-exit ----
  run 30 "$HEAPTOP" -b -q -e --delay-start=60 "$known"
  is "nothing is collected before its time" "$(header "$tmp/out" alloc_bytes)" 0
  start "$tmp/frames" "$HEAPTOP" -b -q -e -d 0.2 --delay-start=0.5 "$VICTIMS/demo"
  ok "and everything after" wait_for "$tmp/frames" '^# alloc_bytes: [1-9]'
  kill -TERM "$started"
  finish "$started" 20
  for what in kill detach; do
    # the program says its number itself
    start "$tmp/$what" "$HEAPTOP" -q -b -d 0.2 --on-exit=$what sh -c 'echo pid $$ >&2; exec sleep 100'
    wait_for "$tmp/$what" '^pid [0-9]'
    wait_for "$tmp/$what" '^# command: sleep'
    victim=$(sed -n 's/^pid //p' "$tmp/$what")
    tap_pids+=("$victim")
    kill -TERM "$started"
    finish "$started" 20
    if [ $what = kill ]; then
      ok "--on-exit=kill ends the program" sh -c "! kill -0 $victim 2>/dev/null"
    else
      ok "--on-exit=detach lets it go on" kill -0 "$victim"
      kill -KILL "$victim"
    fi
  done
else
  skip "programs" "ptrace isn't permitted here"
fi

# ---- completions ----
for shell in bash zsh fish; do
  run 10 "$HEAPTOP" --completion=$shell
  is "--completion=$shell" "$status" 0
  cp "$tmp/out" "complete.$shell"
  # every option of --help is in each of them
  missing=$("$HEAPTOP" --help | grep '^  ' | grep -oE -- '--[a-z][a-z-]+' | sort -u | while read -r o; do
    grep -qE -- "(--|-l )${o#--}([^a-z-]|\$)" "complete.$shell" || printf '%s ' "$o"
  done)
  is "$shell: every option" "$missing" ""
done
run 10 "$HEAPTOP" --completion=csh
is "of no other shell" "$status" 2

# complete WORD...: what bash's completion of these words gives, sorted
complete_words() {
  bash --norc --noprofile -c '
    source complete.bash
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _heaptop heaptop "${COMP_WORDS[COMP_CWORD]}" "" 2>/dev/null
    printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort | tr '\n' ' '
}
is "bash: syntax" "$(bash -n complete.bash 2>&1)" ""
is "bash: an option" "$(complete_words heaptop --del)" "--delay-start= --delay= "
is "bash: a value behind =" "$(complete_words heaptop --sort = all)" "alloc allocs "
is "bash: a value behind a blank" "$(complete_words heaptop -b -s all)" "alloc allocs "
is "bash: just =" "$(complete_words heaptop --on-exit =)" "detach kill "
is "bash: columns" "$(complete_words heaptop --columns = te)" "temp "
is "bash: an option behind others" "$(complete_words heaptop -s live --rate = 4K --vers)" "--version "
start "$tmp/sleeper2" sleep 100
victim=$started
is "bash: a process by its number" "$(complete_words heaptop -p "$victim")" "$victim "
cp "$(command -v sleep)" "$tmp/oddsleeper"
start "$tmp/sleeper3" "$tmp/oddsleeper" 100
until_true 10 grep -q oddsleeper "/proc/$started/comm"
is "bash: by its name" "$(complete_words heaptop -p oddsl)" "$started "
is "bash: --name" "$(complete_words heaptop --name = oddsl)" "oddsleeper "
touch "$tmp/some file.pb.gz"
is "bash: a file" "$(complete_words heaptop -i some)" "some file.pb.gz "
like "bash: a program" " $(complete_words heaptop -e slee)" " sleep "
like "bash: a program behind --" " $(complete_words heaptop -- slee)" " sleep "
is "bash: the program's own options aren't ours" "$(complete_words heaptop sleep --del)" " "
delegated=$(bash --norc --noprofile -c '_command_offset() { echo "from $1"; }
  source complete.bash; COMP_WORDS=(heaptop -s live ls -) COMP_CWORD=4; _heaptop heaptop - ls')
is "bash: they are its completion's" "$delegated" "from 3"
if have tmux; then
  tmux_start 80 24
  tmux_run "cd '$tmp' && PS1='prompt: ' exec bash --norc --noprofile -i"
  tmux_wait '^prompt: '
  tmux_keys "source ./complete.bash" Enter
  tmux_keys -l 'heaptop --theme=con'
  tmux_keys Tab
  ok "bash: with the tab key" tmux_wait '^prompt: heaptop --theme=contrast'
fi
if have zsh; then
  is "zsh: syntax" "$(zsh -n complete.zsh 2>&1)" ""
  mkdir -p zfuncs && cp complete.zsh zfuncs/_heaptop
  if have tmux; then
    tmux_run "cd '$tmp' && exec zsh -f -i"
    tmux_keys -l "PS1='prompt: '; fpath=($tmp/zfuncs \$fpath); autoload -U compinit; compinit -u -d $tmp/zdump; clear"
    tmux_keys Enter
    tmux_wait '^prompt: *$' 20
    tmux_keys -l 'heaptop --theme=con'
    tmux_keys Tab
    ok "zsh: with the tab key" tmux_wait 'heaptop --theme=contrast'
    tmux_keys C-u
    tmux_keys -l 'heaptop -e oddsl'
    tmux_keys C-u
    tmux_keys -l 'heaptop --delay-s'
    tmux_keys Tab
    ok "zsh: an option" tmux_wait 'heaptop --delay-start='
  fi
else
  skip "zsh" "no zsh"
fi
if have fish; then
  fish_says() { fish --no-config -c "source complete.fish; complete -C '$1'" 2>/dev/null | cut -f 1 | tr '\n' ' '; }
  is "fish: syntax" "$(fish --no-execute complete.fish 2>&1)" ""
  is "fish: a value" "$(fish_says 'heaptop --theme=con')" "--theme=contrast "
  is "fish: an option" "$(fish_says 'heaptop --delay-s')" "--delay-start "
  like "fish: a program" " $(fish_says 'heaptop -e slee')" " sleep "
else
  skip "fish" "no fish"
fi
done_testing
