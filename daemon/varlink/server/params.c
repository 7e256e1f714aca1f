/* Reads parameters of a parsed call; names the first that the method's table does not allow. */
#include "daemon/varlink/server/params.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define EXACT_INTEGER 9007199254740992.0 /* 2^53 */

static bool value_read(const struct cJSON *item, enum param_type type, struct value *ret)
{
	switch (type) {
	case PARAM_STRING:
		ret->string = cJSON_GetStringValue(item);
		return ret->string != NULL;
	case PARAM_BOOL:
		ret->boolean = cJSON_IsTrue(item);
		return cJSON_IsBool(item);
	case PARAM_INT:
	case PARAM_FLOAT:
		if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble)) {
			return false;
		}
		ret->number = item->valuedouble;
		if (type == PARAM_FLOAT) {
			return true;
		}
		if (ret->number != trunc(ret->number) || fabs(ret->number) > EXACT_INTEGER) {
			return false;
		}
		ret->integer = (int64_t)ret->number;
		return true;
	}
	return false;
}

const char *params_read(
	const struct cJSON *object, const struct param *params, size_t count, struct value *values)
{
	memset(values, 0, count * sizeof(*values));
	if (object && !cJSON_IsNull(object) && !cJSON_IsObject(object)) {
		return "parameters";
	}
	for (const struct cJSON *item = object ? object->child : NULL; item; item = item->next) {
		size_t i = 0;
		while (i < count && strcmp(params[i].name, item->string) != 0) {
			i++;
		}
		if (i == count) {
			return item->string;
		}
		if (!cJSON_IsNull(item)) {
			if (!value_read(item, params[i].type, &values[i])) {
				return params[i].name;
			}
			values[i].present = true;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (params[i].required && !values[i].present) {
			return params[i].name;
		}
	}
	return NULL;
}
