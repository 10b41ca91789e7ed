/*
 * Scripted screens, for tests: keys and commands from a file, the canvas dumped as text. No
 * terminal is touched, the clock stands still (but for `wait`), so the same snapshot always gives the
 * same screens. One command a line:
 *
 *	# comment
 *	key NAME…		keys by name, blanks between ("key Down Down Enter C-f F1")
 *	type TEXT		each character is a key
 *	:COMMAND		as on the command line (command.c), e.g. ":save-display FILE"
 *	size COLSxROWS		another size of the screen
 *	click ROW COL [left|right|wheel-up|wheel-down]	the mouse; the top left corner is 0 0
 *	wait SECONDS		the clock goes on by that much
 *	expect TEXT		fail unless TEXT is on the screen, in one row
 *	expect-not TEXT		fail if it is
 *	await TEXT		live sources: take new data until TEXT is on the screen, 20 s at most
 *
 * The first failure ends the script with a message that shows the screen.
 */
#include "ui/script.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/worker.h"
#include "ui/detail.h"
#include "ui/screen.h"
#include "ui/tools.h"

#define AWAIT_SECONDS 20
#define SOURCE_MS 10000

static double clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Source files are read by a thread of their own: what is dumped must not depend on when it is done. */
static void settle(struct ui *ui)
{
	ui_poll(ui);
	ui_draw(ui);
	for (int i = 0; (detail_waits(ui) || worker_busy(ui->worker)) && i < SOURCE_MS; i++) {
		poll(NULL, 0, 1);
		bool files = tools_poll(ui);

		if (detail_poll(ui) || files)
			ui_draw(ui);
	}
}

/* Wait until the source has something, a little at most. */
static void wait_source(struct ui *ui)
{
	int fd = ui->source->fd ? ui->source->fd(ui->source->ctx) : -1;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (poll(&p, 1, 50) > 0 && ui->source->seen)
		ui->source->seen(ui->source->ctx);
}

static struct err *fail(struct ui *ui, const char *what, const char *text)
{
	CLEANUP_FREE char *screen = canvas_dump(ui->canvas);

	fprintf(stderr, "%s", screen);
	return err_new(ERR_OTHER, "%s: %s", what, text);
}

static struct err *await_text(struct ui *ui, const char *text)
{
	double until = clock_now() + AWAIT_SECONDS;

	for (;;) {
		settle(ui);
		if (canvas_contains(ui->canvas, text))
			return NULL;
		if (clock_now() > until)
			return fail(ui, "never came on the screen", text);
		wait_source(ui);
	}
}

static void send_key(struct ui *ui, uint32_t key)
{
	struct key_event ev = { .key = key };

	ui_key(ui, &ev);
	settle(ui);
}

static struct err *send_keys(struct ui *ui, char *names)
{
	char *save = NULL;

	for (char *name = strtok_r(names, " ", &save); name; name = strtok_r(NULL, " ", &save)) {
		uint32_t key = key_parse(name);
		if (key == UKEY_NONE)
			return err_new(ERR_BAD_INPUT, "no such key: %s", name);
		send_key(ui, key);
	}
	return NULL;
}

static struct err *send_text(struct ui *ui, const char *text)
{
	size_t len = strlen(text);

	while (len) {
		uint32_t ch;
		size_t n = text_utf8_decode(text, len, &ch);
		if (!n)
			return err_new(ERR_BAD_INPUT, "not UTF-8: %s", text);
		send_key(ui, ch);
		text += n;
		len -= n;
	}
	return NULL;
}

static struct err *send_click(struct ui *ui, const char *arg)
{
	static const char *const names[] = {
		[MOUSE_LEFT] = "left", [MOUSE_MIDDLE] = "middle", [MOUSE_RIGHT] = "right",
		[MOUSE_WHEEL_UP] = "wheel-up", [MOUSE_WHEEL_DOWN] = "wheel-down",
	};
	struct key_event ev = { .key = UKEY_MOUSE, .button = MOUSE_LEFT };
	char button[16] = "left";

	if (sscanf(arg, "%d %d %15s", &ev.y, &ev.x, button) < 2)
		return err_new(ERR_BAD_INPUT, "click ROW COL [BUTTON], not: %s", arg);
	ev.button = 0;
	for (size_t i = MOUSE_LEFT; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], button))
			ev.button = i;
	if (!ev.button)
		return err_new(ERR_BAD_INPUT, "no such button: %s", button);
	ui_key(ui, &ev);
	settle(ui);
	return NULL;
}

static struct err *run_line(struct ui *ui, char *line)
{
	if (!*line || *line == '#')
		return NULL;
	if (*line == ':') {
		bool fine = command_run(ui, line + 1);
		settle(ui);
		return fine ? NULL : fail(ui, "failed", ui->message ? ui->message : line);
	}
	char *arg = line + strcspn(line, " ");
	if (*arg)
		*arg++ = '\0';
	if (!strcmp(line, "key"))
		return send_keys(ui, arg);
	if (!strcmp(line, "type"))
		return send_text(ui, arg);
	if (!strcmp(line, "click"))
		return send_click(ui, arg);
	if (!strcmp(line, "size")) {
		int cols, rows;
		if (sscanf(arg, "%dx%d", &cols, &rows) != 2)
			return err_new(ERR_BAD_INPUT, "size COLSxROWS, not: %s", arg);
		ui_resize(ui, rows, cols);
		settle(ui);
		return NULL;
	}
	if (!strcmp(line, "wait")) {
		double seconds;
		if (!text_parse_time(arg, &seconds))
			return err_new(ERR_BAD_INPUT, "wait SECONDS, not: %s", arg);
		ui->now += seconds;
		settle(ui);
		return NULL;
	}
	if (!strcmp(line, "expect"))
		return canvas_contains(ui->canvas, arg) ? NULL : fail(ui, "not on the screen", arg);
	if (!strcmp(line, "expect-not"))
		return canvas_contains(ui->canvas, arg) ? fail(ui, "on the screen", arg) : NULL;
	if (!strcmp(line, "await"))
		return await_text(ui, arg);
	return err_new(ERR_BAD_INPUT, "no such script command: %s", line);
}

struct err *script_run(struct ui *ui, const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0;
	unsigned number = 0;
	struct err *err = NULL;

	if (!f)
		return err_errno(errno, "%s", path);
	ui->now = 1000;
	double until = clock_now() + AWAIT_SECONDS;
	while (ui_poll(ui), !ui->view && !ui->leaving && clock_now() < until)
		wait_source(ui);
	settle(ui);
	while (!err && !ui->leaving && getline(&line, &cap, f) >= 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		err = err_prefix(run_line(ui, line), "%s:%u", path, number);
	}
	free(line);
	fclose(f);
	return err;
}
