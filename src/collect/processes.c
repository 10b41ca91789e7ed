/* The processes of a collector; see processes.h. */
#include "collect/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/ticks.h"
#include "collect/session.h"
#include "heap/merge.h"
#include "heap/view.h"
#include "target/target.h"

#define OTHERS "(others)"	/* for programs beyond COLLECT_KEPT names */

void processes_init(struct processes *ps)
{
	*ps = (struct processes){ .began = monotonic_seconds() };
}

static void process_free(struct process *p)
{
	if (p->session)
		session_close(p->session);
	else
		target_destroy(p->target);
	view_unref(p->view);
	merge_destroy(p->heap);
	free(p->program);
	free(p->why);
	free(p);
}

void processes_deinit(struct processes *ps)
{
	for (size_t i = 0; i < ps->n; i++)
		process_free(ps->list[i]);
	free(ps->list);
	merge_destroy(ps->sum);
	view_unref(ps->sum_view);
	*ps = (struct processes){ 0 };
}

struct process *processes_add(struct processes *ps, uint32_t parent, struct target *t, struct session *s)
{
	struct process *p = xcalloc(1, sizeof(*p));

	p->id = ++ps->last_id;
	p->parent = parent;
	p->pid = target_pid(t);
	p->target = t;
	p->session = s;
	p->merged = 1;
	p->exit_code = -1;
	p->start = monotonic_seconds() - ps->began;
	VEC_GROW(ps->list, ps->n, ps->cap);
	ps->list[ps->n++] = p;
	return p;
}

struct process *processes_by_pid(const struct processes *ps, pid_t pid)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->pid == pid && !ps->list[i]->over)
			return ps->list[i];
	return NULL;
}

struct process *processes_by_target(const struct processes *ps, const struct target *t)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->target == t)
			return ps->list[i];
	return NULL;
}

struct process *processes_by_id(const struct processes *ps, uint32_t id)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->id == id)
			return ps->list[i];
	return NULL;
}

static void forget(struct processes *ps, struct process *p)
{
	size_t i = 0;

	while (ps->list[i] != p)
		i++;
	memmove(&ps->list[i], &ps->list[i + 1], (ps->n - i - 1) * sizeof(*ps->list));
	ps->n--;
	process_free(p);
}

/* ---- views ---- */

/* The heaps there are, or the first two. */
static size_t count_heaps(const struct processes *ps)
{
	size_t heaps = 0;

	for (size_t i = 0; i < ps->n && heaps < 2; i++)
		heaps += ps->list[i]->view != NULL;
	return heaps;
}

static void add_to_sum(struct processes *ps, struct process *p)
{
	if (!ps->sum || !p->view)
		return;
	if (!p->member)
		p->member = merge_join(ps->sum);
	merge_take(ps->sum, p->member, p->view);
}

/* With a second heap there is something to add up. */
static void begin_sum(struct processes *ps)
{
	if (ps->sum || count_heaps(ps) < 2)
		return;
	ps->sum = merge_create(0);
	for (size_t i = 0; i < ps->n; i++)
		add_to_sum(ps, ps->list[i]);
}

static void take_view(struct processes *ps, struct process *p, enum session_classes classes)
{
	view_unref(p->view);
	p->view = session_publish(p->session, classes);
	begin_sum(ps);
	add_to_sum(ps, p);
}

static void add_memory(struct view_memory *to, const struct view_memory *m)
{
	to->anon += m->anon;
	to->file += m->file;
	to->shmem += m->shmem;
	to->swap += m->swap;
	to->stacks += m->stacks;
	to->data += m->data;
	to->agent_anon += m->agent_anon;
	to->agent_shmem += m->agent_shmem;
	to->older += m->older;
	to->tracked_anon += m->tracked_anon;
	to->tracked_file += m->tracked_file;
	to->tracked_var += m->tracked_var;
	to->scan_share += m->scan_share;
}

/* What can be added up of what is told beside the heap. */
static void add_info(struct view_info *to, const struct view_info *i, bool running)
{
	to->events += i->events;
	to->dropped += i->dropped;
	to->gap += i->gap;
	to->stacks += i->stacks;
	to->stacks_complete += i->stacks_complete;
	for (size_t k = 0; k < ARRAY_SIZE(to->ends); k++)
		to->ends[k] += i->ends[k];
	to->walked += i->walked;
	to->copied += i->copied;
	to->untracked += i->untracked;
	if (!running)
		return;
	to->rss += i->rss;
	add_memory(&to->memory, &i->memory);
	to->threads += i->threads;
	if (i->rate > to->rate)
		to->rate = i->rate;
}

/* Whose command and state stand for all: the program launched, or the first attached to that goes on. */
static const struct process *leader(const struct processes *ps)
{
	for (size_t i = 0; i < ps->n && !ps->list[i]->parent; i++)
		if (ps->list[i]->view && !ps->list[i]->over)
			return ps->list[i];
	return ps->list[0];
}

static struct view *publish_sum(struct processes *ps)
{
	const struct process *first = leader(ps);
	struct view_info info = first->view->info;
	double cost = 0, cpu = 0;

	if (first->over)
		info.rate = 0;
	info.rss = info.threads = info.processes = 0;
	info.memory = (struct view_memory){ 0 };
	info.events = info.dropped = info.gap = info.stacks = info.stacks_complete = 0;
	info.walked = info.copied = info.untracked = 0;
	memset(info.ends, 0, sizeof(info.ends));
	for (size_t i = 0; i < ps->n; i++) {
		const struct process *p = ps->list[i];
		if (!p->view)
			continue;
		add_info(&info, &p->view->info, !p->over || first->over);
		info.processes += p->merged;
		if (p->session) {
			cost += (double)p->view->info.overhead * session_cpu(p->session);
			cpu += session_cpu(p->session);
		}
	}
	if (cpu > 0)
		info.overhead = (float)(cost / cpu);
	return merge_publish(ps->sum, &info, monotonic_seconds() - ps->began);
}

static void publish_merged(struct process *p)
{
	struct view_info info = p->info;

	info.command = p->program;
	view_unref(p->view);
	p->view = merge_publish(p->heap, &info, p->time);
	p->changed = false;
}

void processes_publish(struct processes *ps, enum session_classes classes)
{
	for (size_t i = 0; i < ps->n; i++) {
		struct process *p = ps->list[i];
		if (p->session)
			take_view(ps, p, classes);
		else if (p->changed)
			publish_merged(p);
	}
	view_unref(ps->sum_view);
	ps->sum_view = NULL;
	if (!ps->n || !ps->list[0]->view)
		return;
	ps->sum_view = ps->sum ? publish_sum(ps) : view_ref(leader(ps)->view);
}

struct view *processes_sum(struct processes *ps)
{
	return ps->sum_view ? view_ref(ps->sum_view) : NULL;
}

/* ---- the end of one ---- */

/* "/usr/bin/sed -e x" is sed. */
static char *program_of(const char *command)
{
	size_t n = strcspn(command, " ");
	const char *name = command;

	for (size_t i = 0; i + 1 < n; i++)
		if (command[i] == '/')
			name = command + i + 1;
	return xstrndup(name, n - (size_t)(name - command));
}

static struct process *find_merged(const struct processes *ps, const char *program)
{
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->program && !strcmp(ps->list[i]->program, program))
			return ps->list[i];
	return NULL;
}

static size_t count(const struct processes *ps, bool merged, struct process **ret_first)
{
	size_t n = 0;

	for (size_t i = ps->n; i-- > 0;) {
		struct process *p = ps->list[i];
		if (merged ? !p->program : !p->over || p->program || p->session)
			continue;
		*ret_first = p;
		n++;
	}
	return n;
}

static struct process *new_merged(struct processes *ps, const struct process *like, char *program)
{
	struct process *to = xcalloc(1, sizeof(*to));

	to->id = like->id;
	to->program = program;
	to->heap = merge_create(0);
	to->over = true;
	to->exit_code = -1;
	to->state = VIEW_EXITED;
	to->start = like->start;
	to->time = like->view->time;
	to->info.state = VIEW_EXITED;
	to->info.exit_code = -1;
	to->info.exact = like->view->info.exact;
	to->info.auto_rate = like->view->info.auto_rate;
	to->info.min_size = like->view->info.min_size;
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i] == like)
			ps->list[i] = to;	/* in its place */
	return to;
}

/* `p`, which has a view, becomes part of what is kept of its program's ended processes. */
static void merge_ended(struct processes *ps, struct process *p)
{
	struct process *unused;
	char *program = program_of(p->view->info.command);
	struct process *to = find_merged(ps, program);

	if (!to && count(ps, true, &unused) >= COLLECT_KEPT) {
		free(program);
		program = xstrdup(OTHERS);
		to = find_merged(ps, program);
	}
	bool fresh = !to;
	if (fresh)
		to = new_merged(ps, p, program);
	else
		free(program);
	add_info(&to->info, &p->view->info, true);
	to->info.rss = to->info.threads = 0;
	to->info.memory = (struct view_memory){ 0 };
	struct merge_member *member = merge_join(to->heap);
	merge_take(to->heap, member, p->view);
	merge_leave(to->heap, member);
	to->merged++;
	if (fresh) {
		publish_merged(to);	/* in a list it must have one */
		process_free(p);
	} else {
		to->changed = true;
		forget(ps, p);
	}
}

void processes_end(struct processes *ps, struct process *p, enum view_state state, int exit_code, char *why)
{
	p->over = true;
	p->state = state;
	p->exit_code = exit_code;
	free(p->why);
	p->why = why;
	if (p->session) {
		if (state == VIEW_DETACHED)
			session_give_up(p->session);
		/* of one that is closed here nobody can ask later what it held */
		take_view(ps, p, p->parent ? SESSION_CLASSES_NOW : SESSION_CLASSES_NONE);
		p->target = NULL;
		if (!p->parent)
			return;
		session_close(p->session);
		p->session = NULL;
	} else {
		target_destroy(p->target);
		p->target = NULL;
	}
	if (!p->view && p->parent) {
		forget(ps, p);
		return;
	}
	if (p->member)
		merge_leave(ps->sum, p->member);
	p->member = NULL;
	struct process *first = NULL;
	if (count(ps, false, &first) > COLLECT_KEPT)
		merge_ended(ps, first);
}

/* ---- the list ---- */

static void fill(struct collect_process *to, const struct process *p)
{
	const struct view *v = p->view;

	*to = (struct collect_process){
		.id = p->id, .parent = p->parent, .pid = p->program ? 0 : p->pid, .merged = p->merged,
		.command = xstrdup(v->info.command ? v->info.command : ""),
		.state = p->over ? p->state : v->info.state,
		.why = xstrdup(p->why ? p->why : ""),
		.exit_code = p->exit_code,
		.start = p->start,
		.s = v->totals.s,
		.rss = p->over ? 0 : v->info.rss,
		.threads = p->over ? 0 : v->info.threads,
	};
}

struct process_list *processes_list(const struct processes *ps)
{
	struct process_list *list = xcalloc(1, sizeof(*list) + ps->n * sizeof(list->p[0]));

	list->refs = 1;
	for (size_t i = 0; i < ps->n; i++)
		if (ps->list[i]->view)
			fill(&list->p[list->n++], ps->list[i]);
	return list;
}

void process_list_unref(struct process_list *list)
{
	if (!list || __atomic_sub_fetch(&list->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	for (size_t i = 0; i < list->n; i++) {
		free(list->p[i].command);
		free(list->p[i].why);
	}
	free(list);
}
