/* view/plan/land.c - what is shown of landings. */
#include <stdio.h>
#include <string.h>

#include "hf/base/buf.h"
#include "hf/base/fail.h"
#include "hf/view/plan/land.h"

/* A string; null for "". */
static json_t *maybe_text(const char *text)
{
	return hf_view_text(text[0] ? text : NULL);
}

static json_t *paths_json(const struct hf_land_path *paths, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *row = json_object();

		hf_view_set(&row, "path", hf_view_text(paths[i].path));
		hf_view_set(&row, "kind", json_string(paths[i].kind));
		hf_view_add(&list, row);
	}
	return list;
}

static json_t *texts_json(const char *const *texts, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		hf_view_add(&list, hf_view_text(texts[i]));
	return list;
}

static json_t *kept_json(const struct hf_land_kept *kept, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *row = json_object();

		hf_view_set(&row, "ref", maybe_text(kept[i].ref));
		hf_view_set(&row, "commit", json_string(kept[i].commit));
		hf_view_set(&row, "commits", json_integer(kept[i].commits));
		hf_view_set(&row, "text", hf_view_text(kept[i].text));
		hf_view_add(&list, row);
	}
	return list;
}

static json_t *place_json(const struct hf_land_info *info)
{
	return info->place ? json_integer(info->place) : json_null();
}

json_t *hf_view_candidate(const struct hf_land_info *info)
{
	json_t *object = json_object();

	hf_view_set_name(&object, info->name);
	hf_view_set(&object, "state", json_string(hf_land_state_word(info->state)));
	hf_view_set(&object, "alive", json_boolean(info->alive));
	hf_view_set(&object, "place", place_json(info));
	hf_view_set(&object, "repository", hf_view_text(info->top));
	hf_view_set(&object, "branch", hf_view_text(info->branch));
	hf_view_set(&object, "base", maybe_text(info->base));
	hf_view_set(&object, "tip", maybe_text(info->tip));
	hf_view_set(&object, "commit", maybe_text(info->commit));
	hf_view_set(&object, "commits", json_integer(info->commits));
	hf_view_set(&object, "files", json_integer(info->files));
	hf_view_set(&object, "rebased", json_boolean(info->rebased));
	hf_view_set(&object, "merge", json_string(hf_land_merge_word(info->merge)));
	hf_view_set(&object, "verify", maybe_text(info->verify));
	hf_view_set(&object, "verify_ms", hf_view_number(info->verify_ns, HF_MSEC));
	hf_view_set(&object, "plan", maybe_text(info->plan));
	hf_view_set(&object, "session", maybe_text(info->session));
	hf_view_set(&object, "text", hf_view_text(info->text));
	hf_view_set(&object, "since", hf_view_time(info->since));
	hf_view_set(&object, "changed", hf_view_time(info->changed));
	hf_view_set(&object, "paths", paths_json(info->paths, info->n_paths));
	hf_view_set(&object, "unlanded", paths_json(info->unlanded, info->n_unlanded));
	hf_view_set(&object, "kept", kept_json(info->kept, info->n_kept));
	return object;
}

json_t *hf_view_land_begun(const char *name, const struct hf_land_place *place)
{
	json_t *object = json_object();

	hf_view_set_name(&object, name);
	hf_view_set(&object, "plan", hf_view_text(name));
	hf_view_set(&object, "repository", hf_view_text(place->top));
	hf_view_set(&object, "branch", hf_view_text(place->branch));
	hf_view_set(&object, "dirty", json_integer((json_int_t)place->n_dirty));
	return object;
}

json_t *hf_view_land_report(const char *name, const struct hf_land_report *report)
{
	json_t *object = json_object();

	hf_view_set_name(&object, name);
	hf_view_set(&object, "result", json_string(hf_land_state_word(report->state)));
	hf_view_set(&object, "branch", hf_view_text(report->branch));
	hf_view_set(&object, "commit", maybe_text(report->commit));
	hf_view_set(&object, "text", hf_view_text(report->text));
	hf_view_set(&object, "commits", json_integer(report->commits));
	hf_view_set(&object, "files", json_integer(report->files));
	hf_view_set(&object, "rebased", json_boolean(report->rebased));
	hf_view_set(&object, "already", json_boolean(report->is_there));
	hf_view_set(&object, "unsigned", json_boolean(report->is_unsigned));
	hf_view_set(&object, "also_unmatched", texts_json(report->also_unmatched, report->n_also_unmatched));
	hf_view_set(&object, "left_out", json_integer(report->left_out));
	hf_view_set(&object, "verify_ms", hf_view_number(report->verify_ns, HF_MSEC));
	hf_view_set(&object, "paths", paths_json(report->paths, report->n_paths));
	hf_view_set(&object, "unlanded", paths_json(report->unlanded, report->n_unlanded));
	hf_view_set(&object, "kept", kept_json(report->kept, report->n_kept));
	return object;
}

/* -- queues ---------------------------------------------------------------------------- */

/* The queue of a branch of a repository; made when it is not there yet. NULL: no memory. */
static json_t *queue_of(json_t **queues, const struct hf_land_info *info)
{
	char id[64], head[HF_LAND_OID_MAX];
	json_t *queue, *branch = hf_view_text(info->branch);
	size_t i;

	(void)snprintf(id, sizeof(id), "%llx:%llx", (unsigned long long)info->dev, (unsigned long long)info->ino);
	json_array_foreach(*queues, i, queue) {
		const char *other = json_string_value(json_object_get(queue, "id"));

		if (other && strcmp(other, id) == 0 && json_equal(json_object_get(queue, "branch"), branch)) {
			json_decref(branch);
			return queue;
		}
	}
	queue = json_object();
	hf_view_set(&queue, "id", json_string(id));
	hf_view_set(&queue, "repository", hf_view_text(info->top));
	hf_view_set(&queue, "branch", branch);
	hf_view_set(&queue, "head", hf_land_head(info, head, NULL) == 0 ? json_string(head) : json_null());
	hf_view_set(&queue, "green", json_null());
	hf_view_set(&queue, "candidates", json_array());
	hf_view_set(&queue, "recent", json_array());
	hf_view_add(queues, queue);
	return *queues ? queue : NULL;
}

static json_t *queued_json(const struct hf_land_info *info)
{
	json_t *row = json_object();

	hf_view_set_name(&row, info->name);
	hf_view_set(&row, "place", place_json(info));
	hf_view_set(&row, "step", json_string(hf_land_state_word(info->state)));
	hf_view_set(&row, "alive", json_boolean(info->alive));
	hf_view_set(&row, "ahead", json_array());
	hf_view_set(&row, "eta_ms", json_null());
	hf_view_set(&row, "since", hf_view_time(info->since));
	return row;
}

static json_t *recent_json(const struct hf_land_info *info)
{
	json_t *row = json_object();

	hf_view_set_name(&row, info->name);
	hf_view_set(&row, "result", json_string(hf_land_state_word(info->state)));
	hf_view_set(&row, "commit", maybe_text(info->commit[0] ? info->commit : info->tip));
	hf_view_set(&row, "text", hf_view_text(info->text));
	hf_view_set(&row, "at", hf_view_time(info->changed));
	hf_view_set(&row, "verify_ms", hf_view_number(info->verify_ns, HF_MSEC));
	return row;
}

/* Those with a place come in its order, then the others. */
static void insert_queued(json_t *list, json_t *row)
{
	json_int_t place = json_integer_value(json_object_get(row, "place"));
	size_t at = 0;

	while (at < json_array_size(list)) {
		json_int_t other = json_integer_value(json_object_get(json_array_get(list, at), "place"));

		if (place > 0 && (other == 0 || other > place))
			break;
		at++;
	}
	(void)json_array_insert_new(list, at, row);
}

void hf_view_queues_add(json_t **queues, const struct hf_land_info *info)
{
	json_t *queue = queue_of(queues, info);
	json_t *row = info->state >= HF_LAND_LANDED ? recent_json(info) : queued_json(info);
	const char *head = json_string_value(json_object_get(queue, "head"));

	if (!queue || !row) {
		json_decref(row);
		json_decref(*queues);
		*queues = NULL;
		return;
	}
	if (info->state >= HF_LAND_LANDED)
		(void)json_array_append_new(json_object_get(queue, "recent"), row);
	else
		insert_queued(json_object_get(queue, "candidates"), row);
	/* The head is green when it is what a verifier let land. */
	if (info->state == HF_LAND_LANDED && head && strcmp(head, info->commit) == 0 && info->verify[0])
		(void)json_object_set_new(queue, "green", json_true());
}

void hf_view_queues_finish(json_t **queues)
{
	json_t *queue, *row;
	size_t i, k;

	json_array_foreach(*queues, i, queue) {
		const json_t *list = json_object_get(queue, "candidates");

		json_array_foreach(list, k, row)
			for (size_t n = 0; n < k && json_is_integer(json_object_get(row, "place")); n++)
				(void)json_array_append(json_object_get(row, "ahead"), json_object_get(json_array_get(list, n), "key"));
	}
}

/* -- for people ------------------------------------------------------------------------- */

static void add_line(struct hf_buf *out, const char *word, const char *text)
{
	hf_buf_add_format(out, "%-9s ", word);
	hf_buf_add_shown(out, text, strlen(text));
	hf_buf_add_char(out, '\n');
}

#define NOT_LANDED "not landed: " /* the start of the text of a candidate that is in the queue again after an error */

/* Its run ended by another way than by landing, and its sandbox is there. */
static int is_left(const struct hf_land_info *info)
{
	return info->state == HF_LAND_WORKING && !info->alive;
}

/* Its landing was under way, and no process goes on with it. */
static int is_interrupted(const struct hf_land_info *info)
{
	return !info->alive && info->state > HF_LAND_QUEUED && info->state < HF_LAND_LANDED;
}

/* Its sandbox was removed, and no commit of it is kept. */
static int is_gone(const struct hf_land_info *info)
{
	return !info->plan[0] && !info->tip[0] && !info->alive && (info->state == HF_LAND_WORKING || info->state == HF_LAND_REJECTED);
}

const char *hf_view_candidate_state(const struct hf_land_info *info)
{
	return is_gone(info) ? "gone" : is_left(info) ? "kept" : is_interrupted(info) ? "interrupted" : hf_land_state_word(info->state);
}

const char *hf_view_candidate_note(const struct hf_land_info *info, char out[HF_VIEW_NOTE_MAX])
{
	char word[HF_SHELL_WORD_MAX];
	const char *name = hf_shell_word(info->name, word);

	if (is_gone(info))
		(void)snprintf(out, HF_VIEW_NOTE_MAX, "its sandbox was removed, and nothing of it is kept: 'holdfast land drop %s' drops it", name);
	else if (is_left(info))
		(void)snprintf(out, HF_VIEW_NOTE_MAX, "its run ended without landing: 'holdfast land %s' tries to land it as it is, 'holdfast land drop %s' drops it",
			       name, name);
	else if (is_interrupted(info) || (info->state == HF_LAND_QUEUED && !info->alive))
		/* The text of a killed landing names its next step. */
		(void)snprintf(out, HF_VIEW_NOTE_MAX, "%s; 'holdfast land %s' tries again, 'holdfast land drop %s' drops it",
			       strncmp(info->text, NOT_LANDED, strlen(NOT_LANDED)) == 0 ? info->text : "interrupted", name, name);
	else
		hf_copy_text(out, HF_VIEW_NOTE_MAX, info->text);
	return out;
}

static void add_paths(struct hf_buf *out, const struct hf_land_path *paths, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		hf_buf_add_text(out, "path      ");
		hf_buf_add_shown(out, paths[i].path, strlen(paths[i].path));
		hf_buf_add_format(out, " (%s)\n", paths[i].kind);
	}
}

void hf_view_candidate_text(const struct hf_land_info *info, struct hf_buf *out)
{
	char note[HF_VIEW_NOTE_MAX];

	add_line(out, "name", info->name);
	hf_buf_add_format(out, "state     %s%s\n", hf_view_candidate_state(info), info->alive ? ", under way" : "");
	add_line(out, "branch", info->branch);
	add_line(out, "of", info->top);
	add_line(out, "base", info->base);
	add_line(out, "tip", info->tip[0] ? info->tip : "-");
	if (info->commit[0])
		add_line(out, "commit", info->commit);
	add_line(out, "merge", hf_land_merge_word(info->merge));
	add_line(out, "verify", info->verify[0] ? info->verify : "-");
	add_line(out, "plan", info->plan[0] ? info->plan : "-");
	add_line(out, "text", hf_view_candidate_note(info, note));
	add_paths(out, info->paths, info->n_paths);
	add_paths(out, info->unlanded, info->n_unlanded);
	for (size_t i = 0; i < info->n_kept; i++) {
		hf_buf_add_text(out, "kept      ");
		hf_buf_add_shown(out, info->kept[i].text, strlen(info->kept[i].text));
		hf_buf_add_format(out, ": %s\n", info->kept[i].ref[0] ? info->kept[i].ref : info->kept[i].commit);
	}
}
