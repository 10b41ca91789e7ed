# Screens as they should be, behind tap.sh:
#
#	golden NAME FILE	a test: FILE is what tests/screen/expected/NAME has
#	together FOLDER >FILE	all files of a folder, each under its name
#
# With UPDATE=1 in the environment the expected files are written anew: look at the difference before
# believing it.
expected=$abs_top_srcdir/tests/screen/expected
golden() {
  if [ -n "${UPDATE-}" ]; then
    cp "$2" "$expected/$1"
    pass "$1 written"
  elif cmp -s "$2" "$expected/$1"; then
    pass "$1"
  else
    fail "$1" "the screen differs"
    diff -u "$expected/$1" "$2" | head -n 60 | sed 's/^/#   | /'
  fi
}
together() {
  local file
  for file in "$1"/*; do
    printf '===== %s\n' "${file##*/}"
    cat "$file"
  done
}
