# BPF links, programs and maps that stay in the kernel. Sourced after tap.sh; needs bpftool.
#
#	note_before; ...; note_new; ok "nothing stays" until_true 60 new_gone
#
# Their ids are given once: what is there at a time and wasn't before has to go, whatever another program adds meanwhile.
kernel_ids() { for kind in link prog map; do bpftool -j $kind list | grep -o '"id":[0-9]*' | sed "s/^/$kind /"; done | sort; }
note_before() { kernel_ids >"$tmp/ids.before"; }
note_new() { kernel_ids | comm -13 "$tmp/ids.before" - >"$tmp/ids.new"; }
is_new() { [ -s "$tmp/ids.new" ]; }
new_gone() { [ -z "$(kernel_ids | comm -12 "$tmp/ids.new" -)" ]; }
