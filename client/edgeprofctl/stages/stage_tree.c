/* stages --tree: who runs inside whom, and the order of the other tables. A stage whose parent is
 * not listed stands at the root. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/table.h"

enum { DEEPEST = 16 }; /* ends a circle, too */

static const struct column columns[] = {
	{"Stage", false, true},
	{"Mean ms", true, false},
	{"Total ms", true, false},
	{"Own ms", true, false},
	{"% parent", true, false},
	{"% total", true, false},
	{"Count", true, false},
	{"", false, true},
};

static bool is_of(const cJSON *stage, const char *app)
{
	return strcmp(json_word(stage, "app"), app) == 0;
}

static bool is_parent(const cJSON *stage, const cJSON *child)
{
	return is_of(stage, json_word(child, "app")) &&
	       strcmp(json_word(stage, "stage"), json_word(child, "parent")) == 0 &&
	       strcmp(json_word(stage, "unit"), json_word(child, "parent_unit")) == 0;
}

/* NULL: it is at the root. */
static const cJSON *parent_of(const cJSON *reply, const cJSON *child)
{
	const cJSON *stage = json_first(reply, "stages");
	while (stage && (stage == child || !is_parent(stage, child))) {
		stage = stage->next;
	}
	return stage;
}

struct walk {
	const cJSON *reply;
	const char *app;
	int rows_left; /* each stage stands once, whatever the parents say */
	stage_visit *visit;
	void *ctx;
};

/* The children of `parent`, each with its own; NULL = those at the root. */
static void walk_children(struct walk *walk, const cJSON *parent, int depth)
{
	const cJSON *stage = json_first(walk->reply, "stages");
	for (; stage && walk->rows_left > 0; stage = stage->next) {
		if (is_of(stage, walk->app) && parent_of(walk->reply, stage) == parent) {
			walk->visit(walk->ctx, stage, depth);
			walk->rows_left--;
			if (depth < DEEPEST) {
				walk_children(walk, stage, depth + 1);
			}
		}
	}
}

void stage_tree_walk(const cJSON *reply, const char *app, stage_visit *visit, void *ctx)
{
	struct walk walk = {reply, app, json_count(reply, "stages"), visit, ctx};
	walk_children(&walk, NULL, 0);
}

struct stage_name stage_name(const cJSON *stage)
{
	struct stage_name name;
	const char *unit = json_word(stage, "unit");
	snprintf(name.text, sizeof(name.text), "%s%s%s", json_word(stage, "stage"),
		unit[0] == '\0' ? "" : "@", unit);
	return name;
}

void stage_tree_name(struct table *table, const cJSON *stage, int depth)
{
	table_add(table, TONE_NONE, "%*s%s", 2 * depth, "", stage_name(stage).text);
}

static void add_row(void *ctx, const cJSON *stage, int depth)
{
	struct table *table = ctx;
	double parents = json_number(stage, "parents");
	stage_tree_name(table, stage, depth);
	table_add_number(table, json_number(stage, "mean_ms"), 1);
	table_add_number(table, json_number(stage, "total_ms"), 1);
	table_add_number(table, json_number(stage, "self_ms"), 1);
	table_add_number(table, json_number(stage, "percent_of_parent"), 1);
	table_add_number(table, json_number(stage, "percent_of_total"), 1);
	table_add_number(table, json_number(stage, "total_count"), 0);
	table_add(table, TONE_DIM, "%s", parents > 1 ? "in others, too" : "");
}

void stage_view_tree(struct ctl *ctl, const cJSON *reply, const char *app)
{
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	stage_tree_walk(reply, app, add_row, &table);
	fprintf(ctl->output.stream, "%s%s%s\n", style_on(&ctl->style, TONE_BOLD), app,
		style_off(&ctl->style, TONE_BOLD));
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}
