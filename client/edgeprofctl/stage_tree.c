/* stages --tree: who runs inside whom. A stage whose parent is not listed stands at the root. */
#include "client/edgeprofctl/stage_views.h"

#include <string.h>

#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/table.h"

enum { DEEPEST = 16 }; /* ends a circle, too */

static const struct column columns[] = {
	{"Stage", false, true},
	{"Mean ms", true, false},
	{"Total ms", true, false},
	{"% parent", true, false},
	{"% total", true, false},
	{"Count", true, false},
	{"", false, true},
};

static const cJSON *find_stage(const cJSON *reply, const char *app, const char *name)
{
	const cJSON *stage = json_first(reply, "stages");
	while (stage != NULL && (strcmp(json_word(stage, "app"), app) != 0 ||
					strcmp(json_word(stage, "stage"), name) != 0)) {
		stage = stage->next;
	}
	return stage;
}

static void add_row(struct table *table, const cJSON *stage, int depth)
{
	double parents = json_number(stage, "parents");
	table_add(table, TONE_NONE, "%*s%s", 2 * depth, "", json_word(stage, "stage"));
	table_add_number(table, json_number(stage, "mean_ms"), 1);
	table_add_number(table, json_number(stage, "total_ms"), 1);
	table_add_number(table, json_number(stage, "percent_of_parent"), 1);
	table_add_number(table, json_number(stage, "percent_of_total"), 1);
	table_add_number(table, json_number(stage, "total_count"), 0);
	table_add(table, TONE_DIM, "%s", parents > 1 ? "in others, too" : "");
}

struct tree {
	struct table table;
	const cJSON *reply;
	const char *app;
	int rows_left; /* each stage stands once, whatever the parents say */
};

/* The children of `parent`, each with its own; "" = those at the root. */
static void add_children(struct tree *tree, const char *parent, int depth)
{
	const cJSON *stage = json_first(tree->reply, "stages");
	for (; stage != NULL && tree->rows_left > 0; stage = stage->next) {
		if (strcmp(json_word(stage, "app"), tree->app) != 0) {
			continue;
		}
		const char *own = json_word(stage, "parent");
		if (find_stage(tree->reply, tree->app, own) == NULL) {
			own = "";
		}
		if (strcmp(own, parent) == 0) {
			add_row(&tree->table, stage, depth);
			tree->rows_left--;
			if (depth < DEEPEST) {
				add_children(tree, json_word(stage, "stage"), depth + 1);
			}
		}
	}
}

void stage_view_tree(struct ctl *ctl, const cJSON *reply, const char *app)
{
	struct tree tree = {.reply = reply, .app = app, .rows_left = json_count(reply, "stages")};
	table_init(&tree.table, columns, sizeof(columns) / sizeof(columns[0]));
	add_children(&tree, "", 0);
	fprintf(ctl->output.stream, "%s%s%s\n", style_on(&ctl->style, TONE_BOLD), app,
		style_off(&ctl->style, TONE_BOLD));
	table_print(&tree.table, &ctl->style, ctl->output.stream, 0);
	table_finish(&tree.table);
}
