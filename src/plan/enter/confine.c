/* plan/enter/confine.c - which places stay writable for a confined command. In the parent: allocates. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hf/base/fail.h"
#include "hf/plan/enter/confine.h"
#include "hf/plan/enter/enter_inner.h"
#include "hf/plan/target/target.h"

/* Without these no shell pipeline, terminal, nested sandbox or temporary file works. */
static const char *const always[] = { "/proc", "/dev/pts", "/dev/shm", "/tmp" };

/* Where the known clients keep logins, histories and settings, below $HOME. */
static const char *const of_clients[] = { ".claude",		   ".claude.json",	  ".config/claude",
					  ".codex",		   ".copilot",		  ".config/github-copilot",
					  ".gemini",		   ".config/opencode",	  ".local/share/opencode",
					  ".local/state/opencode", ".cache/opencode" };

void hf_plans_confine(struct hf_plans *plans, const struct hf_confine *confine)
{
	plans->confine = confine;
}

static int by_length(const void *a, const void *b)
{
	size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);

	return (x > y) - (x < y);
}

/* Takes `path`. One that is not there is left out. */
static void add_place(struct hf_inside *inside, char *path)
{
	if (path && inside->n_places < HF_PLACES_MAX)
		inside->places[inside->n_places++] = path;
	else
		free(path);
}

static int add_given(struct hf_inside *inside, char *const *given, struct hf_err *err)
{
	for (size_t i = 0; given && given[i]; i++) {
		char *path = realpath(given[i], NULL);

		if (!path)
			return FAIL(err, HF_E_NO_CONFINE, "realpath", given[i], "it should stay writable: %s", strerrordesc_np(errno));
		if (inside->n_places == HF_PLACES_MAX) {
			free(path);
			return FAIL(err, HF_E_NO_CONFINE, "arguments", given[i], "too many writable places");
		}
		add_place(inside, path);
	}
	return 0;
}

static void add_clients(struct hf_inside *inside)
{
	const char *home = getenv("HOME");
	char path[4096];

	if (!home || home[0] != '/')
		return;
	for (size_t i = 0; i < sizeof(of_clients) / sizeof(of_clients[0]); i++)
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", home, of_clients[i]) < sizeof(path))
			add_place(inside, realpath(path, NULL));
}

/* A place in another place, or in a target's sandbox, is writable with that. */
static int is_covered(const struct hf_inside *inside, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (hf_path_is_in(path, inside->places[i]))
			return 1;
	for (size_t i = 0; i < inside->n; i++)
		if (hf_path_is_in(path, inside->layers[i].target))
			return 1;
	return 0;
}

static void sort_places(struct hf_inside *inside)
{
	size_t kept = 0;

	qsort(inside->places, inside->n_places, sizeof(*inside->places), by_length);
	for (size_t i = 0; i < inside->n_places; i++) {
		if (is_covered(inside, kept, inside->places[i]))
			free(inside->places[i]);
		else
			inside->places[kept++] = inside->places[i];
	}
	inside->n_places = kept;
}

/* The command works in a copy, so the target itself is to be protected; Landlock takes nothing out of a place. */
static int check_copied(const struct hf_enter *enter, struct hf_err *err)
{
	for (size_t i = 0; i < enter->record.n_sandboxes; i++) {
		const struct hf_sandbox_record *s = &enter->record.sandboxes[i];

		for (size_t k = 0; s->strategy != HF_STRATEGY_OVERLAY && k < enter->inside.n_places; k++)
			if (hf_path_is_in(s->target.path, enter->inside.places[k]))
				return FAIL(err, HF_E_NO_CONFINE, "confine", s->target.path,
					    "%s stays writable, and its sandbox is a %s; use --strategy overlay",
					    enter->inside.places[k], hf_strategy_word(s->strategy));
	}
	return 0;
}

int hf_confine_prepare(struct hf_enter *enter, struct hf_err *err)
{
	const struct hf_confine *confine = enter->plans->confine;
	struct hf_inside *inside = &enter->inside;
	int r;

	if (!confine)
		return 0;
	inside->confine = confine->flags;
	if (!(confine->flags & HF_CONFINE_READONLY))
		return 0;
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		add_place(inside, realpath(always[i], NULL));
	/* Locks, journal and the records of sessions within this one. */
	add_place(inside, realpath(hf_state_path(enter->plans->state), NULL));
	add_clients(inside);
	r = add_given(inside, confine->write, err);
	if (r < 0)
		return r;
	sort_places(inside);
	return check_copied(enter, err);
}
