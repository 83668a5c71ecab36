/*
 * plan/inside/namespace.h - the inside: user and mount namespace, overlays, capabilities.
 *
 * These run in a child that is about to exec, forked from a process that may have threads: no
 * memory is allocated, no lock taken. What they need is made ready by the parent (struct
 * hf_inside); what fails is told by struct hf_inside_fail through a pipe.
 */
#ifndef PLAN_INSIDE_NAMESPACE_H
#define PLAN_INSIDE_NAMESPACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hf/plan/registry/registry.h"

#define HF_INSIDE_MAP_MAX 16384 /* a user namespace has at most 340 extents */
#define HF_PLACES_MAX     96

/* One overlay. Paths, because descriptors from before name mounts of the old namespace. */
struct hf_layer {
	const char *target;
	uint64_t dev, ino; /* of the target, now */
	const char *sandbox; /* absolute path of the sandbox's directory in the state directory */
	int upper, work;     /* opened before; the same directories must be found again */
	int pins;            /* the same, of what is pinned over the target (pins.h); -1: nothing is */
};

struct hf_inside {
	struct hf_layer *layers; /* outermost first */
	size_t n;
	int root_only;   /* 1 afterwards: no user namespace: root, mount namespace alone */
	int join_user;   /* namespaces to join; -1: make new ones. join_user -1 with join_mnt: none */
	int join_mnt;
	const char *cwd; /* absolute */
	unsigned confine;   /* enum hf_confine_flags */
	char *places[HF_PLACES_MAX]; /* that stay writable: absolute, without symlinks, none in another or in a target */
	size_t n_places;
	int has_user;       /* 1 afterwards: a user namespace was made for confining alone */
	int landlocked;     /* 1 afterwards: read-only by Landlock, not by mounts */
	char uid_map[HF_INSIDE_MAP_MAX], gid_map[HF_INSIDE_MAP_MAX]; /* of root: all extents; "": own ids only */
};

struct hf_inside_fail {
	int sys;
	int confine; /* 1: it cannot be confined, as was asked for */
	int stdio;   /* 1: it is about the standard input, output or error: HF_STEP_STDIO_... */
	char step[32];
	char subject[160];
	char text[200]; /* the kernel's sentence, or "" */
};

/* Reads our own id maps as maps of a namespace with the same numbers. For root. */
int hf_inside_read_maps(struct hf_inside *inside, struct hf_err *err);

/* The ids of a new user namespace: all extents that were read, or the caller's own two. In the child. id_maps.c */
int hf_inside_map_all(const struct hf_inside *inside, struct hf_inside_fail *fail);
int hf_inside_map_own(uid_t uid, gid_t gid, struct hf_inside_fail *fail);

/*
 * Makes or joins the namespaces and mounts the overlays. Returns 0 or -errno with *fail filled.
 * The caller is inside afterwards, with the capabilities of the namespace, cwd not changed.
 */
int hf_inside_enter(struct hf_inside *inside, struct hf_inside_fail *fail);

#define HF_STEP_STDIO_DIRECTORY "a directory as input or output"
#define HF_STEP_STDIO_WRITABLE  "a writable file of the target"
#define HF_STEP_STDIO_AGAIN     "opening it again"

/*
 * Makes standard input, output and error safe: a file of a target that is open for reading is opened again
 * in the sandbox. Refused are one that is open for writing, and directories. After hf_inside_enter.
 */
int hf_inside_open_stdio(const struct hf_inside *inside, struct hf_inside_fail *fail);

/* A user namespace alone, with the own ids. */
int hf_inside_new_user(struct hf_inside_fail *fail);

/* Gives up what could undo the sandbox: everything, or for root what is not about files. */
int hf_inside_drop(int keep_ptrace, struct hf_inside_fail *fail);

/* Marks all descriptors from 3 up CLOEXEC. */
int hf_inside_close_others(void);

/* Fills *fail from errno; returns -errno. */
int hf_inside_failed(struct hf_inside_fail *fail, const char *step, const char *subject);

/* -- explain.c: for people ---------------------------------------------------------- */

/* What a failure means and what to do; both texts may be "". */
void hf_inside_explain(const struct hf_inside_fail *fail, char why[HF_PLAN_WHY_MAX],
		       char remedy[HF_PLAN_WHY_MAX]);

/* The same as an error: HF_E_NO_OVERLAY, HF_E_NO_CONFINE or HF_E_STDIO. */
int hf_inside_error(const struct hf_inside_fail *fail, const char *subject, struct hf_err *err);

#endif
