/* Getting out: the hooks are taken out, the text is compared, and the target goes on. See session.h. */
#include "collect/watched.h"

#include <time.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "probe/probe.h"
#include "target/target.h"

#define GONE_TRIES 1000		/* times 1 ms, until a program that is ending has ended */

static struct err *take_out(struct session *s, bool *ret_left)
{
	bool again = true;

	*ret_left = false;
	for (int i = 0; again && i < SESSION_REMOVE_TRIES; i++) {
		if (i) {
			struct err *err = session_let_run(s, i - 1);
			if (err)
				return err;
		}
		struct err *err = s->probe->ops->remove(s->probe, s->target, &again);
		if (err)
			return err;
	}
	*ret_left = again;
	return NULL;
}

/*
 * It can't be stopped because it is ending, or has executed another program: see it through. After an exec there is nothing
 * of ours in it any more.
 */
static struct err *see_through(struct session *s, struct err *gone)
{
	if (gone->code != ERR_GONE)
		return gone;
	for (int i = 0; i < GONE_TRIES; i++) {
		struct err *err = NULL;
		switch (session_step(s, &err)) {
		case SESSION_ENDED:
			err_free(gone);
			return NULL;
		case SESSION_BROKEN:
			err_free(gone);
			return err;
		case SESSION_IDLE:
		case SESSION_BUSY:
		case SESSION_AT_ONCE:
			if (s->executed || s->left) {
				err_free(gone);
				return NULL;
			}
			nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		}
	}
	return gone;
}

/*
 * The program stands still for what must be done then, and no longer: what has piled up in the rings, millions of events
 * perhaps, is taken in when it runs again, and the text compared.
 */
static struct err *take_out_and_release(struct session *s, char **ret_message)
{
	bool hold = !s->config.uprobe, left = false;

	/* of the children that a program leaves behind */
	if (!s->hushed)
		err_free(s->placed ? s->probe->ops->set_active(s->probe, s->target, false) : NULL);
	struct err *err = hold ? target_stop(s->target) : NULL;
	if (err)
		return err;
	if (s->placed && !s->hushed && !s->probe->outlives)
		session_drain(s, true);
	if (s->placed) {
		s->probe->ops->stats(s->probe, s->target, &s->stats);
		err = take_out(s, &left);
	}
	struct err *resumed = target_resume(s->target);
	if (hold)
		log_line("the program stood still for %.2f ms while hooks were taken out", target_pause(s->target) * 1e3);
	if (!err && s->placed && !s->hushed)
		session_drain(s, true);
	if (!err && s->placed)
		err = s->probe->ops->verify(s->probe, s->target);
	if (err) {
		err_free(resumed);
		return err;
	}
	s->placed = false;
	s->detached = true;
	const char *stays = left ? "a thread was always inside" : s->probe->stays;
	*ret_message = xasprintf("detached from %d: %s removed, its code is identical to its files%s%s",
				 (int)target_pid(s->target), hold ? "hooks" : "probes",
				 stays ? "; some unused memory stays mapped: " : "", stays ? stays : "");
	return resumed;
}

struct err *session_detach(struct session *s, char **ret_message)
{
	struct err *err = NULL;

	*ret_message = NULL;
	if (s->left && !s->ended) {
		s->detached = true;
		*ret_message = xasprintf("process %d runs unwatched", (int)target_pid(s->target));
	}
	s->leaving = true;
	if (!s->ended && !s->detached) {
		err = take_out_and_release(s, ret_message);
		if (err)
			err = see_through(s, err);
		if (!err && (s->executed || s->left) && !s->ended) {
			s->detached = true;
			*ret_message = xasprintf("detached from %d: it has just executed another program, in which nothing of "
						 "heaptop is", (int)target_pid(s->target));
		}
	}
	if (err && (s->ended || s->detached)) {
		err_free(err);
		err = NULL;
	}
	return err;
}

void session_give_up(struct session *s)
{
	s->detached = true;
}
