/* cJSON: parses a text, prints it, parses that again, and compares both. */
#include "driver.h"
#include <cJSON.h>

static int once(void) {
    static char text[] =
        "{\"numbers\": [1, -2.5, 3e4, 0], \"name\": \"a \\\"quoted\\\" \\u00e9 string\","
        " \"nested\": {\"yes\": true, \"no\": false, \"nothing\": null}, \"list\": [[], {}, [[1]]]}";
    mark(text, sizeof text - 1);
    cJSON *json = cJSON_Parse(text);
    if (!json) return 1;
    char *printed = cJSON_PrintUnformatted(json);
    cJSON *again = cJSON_Parse(printed);
    if (!cJSON_Compare(json, again, 1)) return 2;
    cJSON_DeleteItemFromObject(json, "list");
    cJSON_AddStringToObject(json, "added", "x");
    char *pretty = cJSON_Print(json);
    printf("%s\n%s\n%d\n", printed, pretty, cJSON_GetArraySize(cJSON_GetObjectItem(json, "NUMBERS")));
    free(printed);
    free(pretty);
    cJSON_Delete(json);
    cJSON_Delete(again);
    return 0;
}
