# A private tmux server for screen tests, behind tap.sh:
#
#	tmux_start 80 24 [TERM]		a session with a shell-less, empty pane
#	tmux_run "command"		in the pane, in place of what was there
#	tmux_ended, tmux_status		has it ended; its exit code
#	tmux_wait ERE [SECONDS]		until the screen shows it
#	tmux_keys KEY...		as for send-keys
#	tmux_capture [-e]		the screen as text (with -e: and colours)
#	tmux_resize W H
#	tmux_flags			alternate screen, cursor, mouse: "0 1 0" is a normal terminal
#	tmux_stop
#
# The server has a UTF-8 locale, which its panes inherit (else programs draw lines with the
# alternate character set, captured as letters), no escape delay and no configuration file. A
# second session keeps it alive when the pane's program ends.

tmux_socket=
tm() { tmux -S "$tmux_socket" -f /dev/null "$@"; }

tmux_start() {
  tmux_socket=$tmp/tmux.$RANDOM
  env -u TMUX LC_ALL=C.UTF-8 TERM=xterm-256color tmux -S "$tmux_socket" -f /dev/null -u \
    new-session -d -s keep -x 10 -y 5 cat \; \
    set -sg escape-time 0 \; set -g status off \;    set -g default-terminal "${3:-tmux-256color}" \; \
    new-session -d -s t -x "$1" -y "$2" cat || bail_out "tmux doesn't start"
}
# The exit code goes through a file: tmux loses that of a program that ends at once. The shell stays
# until the pane gets another command, so that the screen can still be looked at.
tmux_run() {
  rm -f "$tmp/tmux.status"
  tm respawn-pane -k -t t "$1
    echo \$? >'$tmp/tmux.part'; mv '$tmp/tmux.part' '$tmp/tmux.status'; exec cat"
}
tmux_ended() { [ -s "$tmp/tmux.status" ]; }
tmux_status() { cat "$tmp/tmux.status" 2>/dev/null; }
tmux_capture() { tm capture-pane -p -t t "$@"; }
tmux_shows() { tmux_capture | grep -Eq -- "$1"; }
tmux_wait() { until_true "${2:-10}" tmux_shows "$1"; }
tmux_keys() { tm send-keys -t t "$@"; }
tmux_resize() { tm resize-window -t t -x "$1" -y "$2"; }
tmux_flags() { tm display -p -t t '#{alternate_on} #{cursor_flag} #{mouse_any_flag}'; }
tmux_stop() {
  [ -n "$tmux_socket" ] && tm kill-server 2>/dev/null
  tmux_socket=
  return 0
}
