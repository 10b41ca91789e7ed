/* Getting out: the hooks are taken out, the text is compared, and the target goes on. See session.h. */
#include "collect/watched.h"

#include <time.h>

#include "base/err.h"
#include "base/mem.h"
#include "probe/probe.h"
#include "target/target.h"

#define GONE_TRIES 1000		/* times 1 ms, until a program that is ending has ended */
#define CATCH_UP_ROUNDS 16

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

static struct err *take_out_and_release(struct session *s, char **ret_message)
{
	bool hold = !s->config.uprobe;

	/* most of what has piled up, while the program still runs */
	for (int i = 0; hold && i < CATCH_UP_ROUNDS && session_drain(s, false); i++)
		;
	struct err *err = hold ? target_stop(s->target) : NULL;

	if (err)
		return err;
	session_drain(s, true);
	bool left = false;
	if (s->placed) {
		s->probe->ops->stats(s->probe, s->target, &s->stats);
		err = take_out(s, &left);
		if (!err)
			err = s->probe->ops->verify(s->probe, s->target);
	}
	struct err *resumed = target_resume(s->target);
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
