# The fuzzers: all sources again, by clang, with coverage, ASan and UBSan, into one program. Made by
# `make fuzz`, which says SRCDIR, CLANG, FUZZ_SOURCES, FUZZ_CPPFLAGS, FUZZ_LIBS; in a file of its own so that
# nothing else needs clang, or a make that knows patterns.

SAN = -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all
FUZZ_CFLAGS = -std=gnu11 -O1 -g -gdwarf-4 -fno-omit-frame-pointer -Wall -Wextra $(SAN)
OUT = tests/fuzz/obj
VPATH = $(SRCDIR)

objects = $(patsubst %,$(OUT)/%.o,$(basename $(filter %.c %.S,$(FUZZ_SOURCES))))

tests/fuzz/fuzzers: $(objects)
	@echo "  FUZZ     $@"; \
	$(CLANG) $(subst fuzzer-no-link,fuzzer,$(SAN)) -o $@ $(objects) $(FUZZ_LIBS)

$(OUT)/%.o: %.c $(SRCDIR)/tests/fuzz/fuzz.mk
	@mkdir -p $(@D); echo "  FUZZ     $<"; \
	$(CLANG) $(FUZZ_CPPFLAGS) -DPRESET_DIR='"presets"' -DSYSCONFDIR='"/etc"' $(FUZZ_CFLAGS) -MMD -MP -c -o $@ $<

# what embeds the agent and the BPF program, as ever: they have no sanitizers
$(OUT)/%.o: %.S src/agent/agent.bin
	@mkdir -p $(@D); $(CLANG) -Wa,-Isrc/agent -Wa,-Isrc/probe -Wa,-Isrc/target -c -o $@ $<

-include $(objects:.o=.d)
