/* hook/install/places.h - where the clients have their settings: for a user, for a project, for this checkout alone. */
#ifndef HOOK_INSTALL_PLACES_H
#define HOOK_INSTALL_PLACES_H

#include <stddef.h>

#include "holdfast/hook.h"

struct hf_place {
	enum hf_client client;
	enum hf_hook_scope scope;
	const char *variable; /* that moves it; NULL: none */
	const char *beside;   /* put behind that variable's value */
	const char *path;     /* below the home or project directory */
};

/* A file of settings, and the directory that a symlink must not lead out of. */
struct hf_found {
	char *root;
	char *path;
	size_t root_len;
};

void hf_found_done(struct hf_found *found);

/* The place for the client and scope of `opts`; NULL: there is none. */
const struct hf_place *hf_place_of(const struct hf_settings_opts *opts, struct hf_err *err);

/* The one after `place`, NULL after the last; with NULL the first. */
const struct hf_place *hf_place_next(const struct hf_place *place);

/* The file of that place, which need not exist. Returns 0 or -errno. */
int hf_place_find(const struct hf_place *place, const struct hf_settings_opts *opts, struct hf_found *ret, struct hf_err *err);

#endif
