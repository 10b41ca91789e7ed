/*
 * A made-up heap for tests of the screens: always the same sites, stacks, names and numbers, built
 * with the real model (heap/) and names table, no process behind it. Time goes on by steps of one
 * second, so that graphs and trends have something to show.
 */
#ifndef HEAPTOP_TESTS_FAKEHEAP_H
#define HEAPTOP_TESTS_FAKEHEAP_H

#include <stdbool.h>
#include <stdint.h>

struct names;
struct view;
struct fakeheap;

struct fakeheap_config {
	uint64_t rate;		/* 1: exact */
	bool auto_rate;
	bool snapshot;		/* the view says it is one; else a running program */
	bool attached;
	uint64_t dropped;
	bool hostile;		/* names of 50,000 characters, control bytes, CJK, emoji */
	bool threads;		/* main, two of a pool, many that have ended */
	uint32_t gap;		/* seconds that heaptop sleeps in the middle: step 10 takes so long */
	bool alike;		/* two functions that look the same without their arguments */
};

struct fakeheap *fakeheap_create(const struct fakeheap_config *config);
void fakeheap_destroy(struct fakeheap *f);
/* A second passes. */
void fakeheap_step(struct fakeheap *f);
/* Publish; the caller's reference. */
struct view *fakeheap_view(struct fakeheap *f);
struct names *fakeheap_names(struct fakeheap *f);
/* heap_choose_threads; for the next view. */
void fakeheap_choose(struct fakeheap *f, const char *which);
/* The program has ended. */
void fakeheap_end(struct fakeheap *f, int exit_code);

#endif
