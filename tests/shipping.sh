#!/usr/bin/env bash
# What is installed beside the program: the menu entry, its icon, the metainfo of software centres, and that completions
# know the words of every option that has some.
. "${abs_top_srcdir:-.}/tests/lib/tap.sh"
need python3 desktop-file-validate appstreamcli
share=$abs_top_srcdir/share

run 20 desktop-file-validate "$share/heaptop.desktop"
is "the menu entry is valid" "$status $(cat "$tmp/out" "$tmp/err")" "0 "
run 60 appstreamcli validate --no-net "$share/org.heaptop.heaptop.metainfo.xml"
is "the metainfo is valid" "$status" 0
diag_file "$tmp/out"
said() { python3 - "$share/org.heaptop.heaptop.metainfo.xml" "$1" <<'END'
import sys, xml.etree.ElementTree as tree
found = tree.parse(sys.argv[1]).getroot().find(sys.argv[2])
print(found.get("version") or found.text)
END
}
run 10 "$HEAPTOP" --version
like "its newest release is this version" "$(head -n 1 "$tmp/out") " " $(said releases/release | sed 's/\./\\./g') "
ok "its licence is that of --version" grep -qF "$(said project_license)" "$tmp/out"
is "it starts what is installed as" "$(said launchable)" "heaptop.desktop"
is "so does the menu entry, in a terminal" "$(sed -n 's/^Exec=//p; s/^Terminal=//p' "$share/heaptop.desktop" | sort | tr '\n' ' ')" "heaptop true "
ok "the icon is a picture" python3 -c 'import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == "{http://www.w3.org/2000/svg}svg" and len(list(root.iter())) > 5' "$share/heaptop.svg"

# make's own variables are those of the run that this test is in
run 60 env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -C "$abs_top_builddir" DESTDIR="$tmp/root" prefix=/usr datadir=/usr/share \
  install-dist_desktopDATA install-dist_iconDATA install-dist_metainfoDATA
is "they are installed" "$status" 0
diag_file "$tmp/err"
for place in applications/heaptop.desktop icons/hicolor/scalable/apps/heaptop.svg metainfo/org.heaptop.heaptop.metainfo.xml; do
  ok "where others look: $place" test -s "$tmp/root/usr/share/$place"
done

# ---- completions ----
"$HEAPTOP" --completion=bash >"$tmp/complete.bash"
words() {
  bash --norc --noprofile -c '
    source "$1"; shift
    COMP_WORDS=(heaptop "$1" = "") COMP_CWORD=3
    _heaptop heaptop "" "" 2>/dev/null
    printf "%s\n" "${COMPREPLY[@]}"' - "$tmp/complete.bash" "$1" | sort | tr '\n' ' '
}
is "--view: every screen" "$(words --view)" "flame modules output sites threads time tree "
is "--group" "$(words --group)" "function module site stack thread "
is "--probe" "$(words --probe)" "agent uprobe "
for option in view:modules group:thread probe:uprobe; do
  run 10 "$HEAPTOP" -b "--${option%:*}=${option#*:}" --version
  is "what --${option%:*} is completed with is taken" "$status" 0
done
for shell in zsh fish; do
  "$HEAPTOP" --completion=$shell >"$tmp/complete.$shell"
  for words in "sites tree flame time threads modules output" "site function stack module thread" "agent uprobe"; do
    ok "$shell: $words" grep -qF "$words" "$tmp/complete.$shell"
  done
done
done_testing
