/* zlib: a round trip, and both checksums. */
#include "driver.h"
#include <zlib.h>

static int once(void) {
    static char text[3000], packed[4000], back[3000];
    fill(text, sizeof text);
    uLong room = sizeof packed, size = sizeof back;
    if (compress2((Bytef *)packed, &room, (Bytef *)text, sizeof text, 6)) return 1;
    if (uncompress((Bytef *)back, &size, (Bytef *)packed, room)) return 2;
    if (size != sizeof text || memcmp(text, back, size)) return 3;
    printf("%lu %08lx %08lx\n", room, crc32(0, (Bytef *)packed, room), adler32(1, (Bytef *)back, size));
    return 0;
}
