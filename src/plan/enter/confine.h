/*
 * plan/enter/confine.h - what the commands inside may not do besides changing the targets: write elsewhere, use the network.
 *
 *     hf_plans_confine(plans, &confine);   from now on every entry through these plans is confined, or fails
 *
 * Read-only by mounts, where an entry has a mount namespace: every mount is made read-only, then the places that stay
 * writable are put back as they were. The command cannot undo that: it has no capability over these mounts, and in a
 * namespace of its own the kernel keeps them locked. Where mounts cannot do it (a copy needs no namespace) Landlock does: what
 * is in files and what they are called is safe then, but not their modes, owners and times.
 *
 * An entry that cannot be confined as asked for fails with HF_E_NO_CONFINE. It is never made without.
 */
#ifndef PLAN_ENTER_CONFINE_H
#define PLAN_ENTER_CONFINE_H

#include <stddef.h>

#include "holdfast/err.h"
#include "holdfast/plan.h"

enum hf_confine_flags {
	HF_CONFINE_READONLY = 1 << 0,   /* everything but the targets and the places below */
	HF_CONFINE_NO_NETWORK = 1 << 1, /* a network of its own, with nothing but loopback */
};

struct hf_confine {
	unsigned flags;
	char **write; /* NULL-ended: what stays writable besides, absolute; NULL: nothing */
};

/* `confine` is used as long as `plans`; NULL: not confined. */
void hf_plans_confine(struct hf_plans *plans, const struct hf_confine *confine);

/* -- for an entry ------------------------------------------------------------------- */

struct hf_enter;
struct hf_inside;
struct hf_inside_fail;

/* In the parent: finds the places that stay writable. */
int hf_confine_prepare(struct hf_enter *enter, struct hf_err *err);

/* In the child, inside, before anything else is started there: 0, or -errno with *fail filled. */
int hf_confine_network(struct hf_inside *inside, struct hf_inside_fail *fail);
int hf_confine_files(struct hf_inside *inside, struct hf_inside_fail *fail);

/* plan/inside/landlock.c: the same by Landlock. -errno with *fail filled where the kernel has none that is enough. */
int hf_confine_landlock(const struct hf_inside *inside, struct hf_inside_fail *fail);

#endif
