/* hook/install/places.c - where the clients have their settings. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hf/base/fail.h"
#include "hf/hook/install/places.h"

static const struct hf_place places[] = {
	{ HF_CLIENT_CLAUDE, HF_SCOPE_USER, "CLAUDE_CONFIG_DIR", "settings.json", ".claude/settings.json" },
	{ HF_CLIENT_CLAUDE, HF_SCOPE_PROJECT, NULL, NULL, ".claude/settings.json" },
	{ HF_CLIENT_CLAUDE, HF_SCOPE_LOCAL, NULL, NULL, ".claude/settings.local.json" },
	{ HF_CLIENT_CODEX, HF_SCOPE_USER, "CODEX_HOME", "hooks.json", ".codex/hooks.json" },
	{ HF_CLIENT_CODEX, HF_SCOPE_PROJECT, NULL, NULL, ".codex/hooks.json" },
	{ HF_CLIENT_COPILOT, HF_SCOPE_USER, "COPILOT_HOME", "hooks/holdfast.json", ".copilot/hooks/holdfast.json" },
	{ HF_CLIENT_COPILOT, HF_SCOPE_PROJECT, NULL, NULL, ".github/hooks/holdfast.json" },
	{ HF_CLIENT_GEMINI, HF_SCOPE_USER, "GEMINI_CLI_HOME", ".gemini/settings.json", ".gemini/settings.json" },
	{ HF_CLIENT_GEMINI, HF_SCOPE_PROJECT, NULL, NULL, ".gemini/settings.json" },
};

#define N_PLACES (sizeof(places) / sizeof(places[0]))

void hf_found_done(struct hf_found *found)
{
	free(found->root);
	free(found->path);
}

static const char *directory_of(const struct hf_place *place, const struct hf_settings_opts *opts, const char **ret_rest,
				struct hf_err *err)
{
	const char *moved = place->variable ? getenv(place->variable) : NULL, *home = getenv("HOME");

	*ret_rest = place->path;
	if (place->scope != HF_SCOPE_USER)
		return opts->project ? opts->project : ".";
	if (moved && moved[0] && moved[0] != '/') {
		(void)FAIL(err, -EINVAL, "settings", place->variable, "'%s' is not an absolute path", moved);
		return NULL;
	}
	if (moved && moved[0]) {
		*ret_rest = place->beside;
		return moved;
	}
	if (!home || home[0] != '/') {
		(void)FAIL(err, -EINVAL, "settings", hf_client_word(place->client), "HOME is not an absolute path");
		return NULL;
	}
	return home;
}

int hf_place_find(const struct hf_place *place, const struct hf_settings_opts *opts, struct hf_found *ret, struct hf_err *err)
{
	const char *rest, *directory = directory_of(place, opts, &rest, err);

	if (!directory)
		return -EINVAL;
	ret->root = realpath(directory, NULL);
	if (!ret->root)
		return FAIL_SYS(err, "open", directory);
	ret->root_len = strlen(ret->root);
	if (asprintf(&ret->path, "%s/%s", ret->root, rest) < 0) {
		ret->path = NULL;
		return hf_fail_sys(err, ENOMEM, "malloc", directory);
	}
	return 0;
}

const struct hf_place *hf_place_of(const struct hf_settings_opts *opts, struct hf_err *err)
{
	for (size_t i = 0; i < N_PLACES; i++)
		if (places[i].client == opts->client && places[i].scope == opts->scope)
			return &places[i];
	(void)FAIL(err, -EINVAL, "settings", hf_client_word(opts->client), "it has no settings of this kind");
	return NULL;
}

const struct hf_place *hf_place_next(const struct hf_place *place)
{
	size_t next = place ? (size_t)(place - places) + 1 : 0;

	return next < N_PLACES ? &places[next] : NULL;
}
