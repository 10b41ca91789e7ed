/*
 * The question before a process from the list is attached to: what would be placed in it, how long it stands still for
 * that and what it costs afterwards. Enter again attaches, Esc goes back to the list. Whoever has the list open lets a
 * worker look at the process meanwhile (picker_look); the answer needn't be waited for.
 */
#ifndef HEAPTOP_UI_PICKASK_H
#define HEAPTOP_UI_PICKASK_H

#include <stdbool.h>
#include <sys/types.h>

#include "ui/picker.h"

struct worker;

/* Ask about the process under the cursor. */
void pickask_open(struct picker *p);
void pickask_close(struct picker *p);
/* Over the list, which has been drawn. */
void pickask_draw(struct picker *p, struct canvas *c);
enum picker_result pickask_key(struct picker *p, const struct key_event *ev);

/* What attaching to a process would do to it, a line each; the caller frees. On a worker's thread. */
typedef char *(*picker_foresee_fn)(void *ctx, pid_t pid);
/* If it is asked about one that nobody has looked at yet, have that done. foresee NULL: nobody can. */
void picker_look(struct picker *p, struct worker *w, picker_foresee_fn foresee, void *ctx);
/* What has been found out about a process, taken over; of no use if it isn't asked about that one (any more). */
void picker_tell(struct picker *p, pid_t pid, char *text);

#endif
