/* bzip2: a round trip. */
#include "driver.h"
#include <bzlib.h>

void bz_internal_error(int code) { exit(code); }

static int once(void) {
    static char text[1500], packed[2500], back[1500];
    fill(text, sizeof text);
    unsigned room = sizeof packed, size = sizeof back, sum = 0;
    if (BZ2_bzBuffToBuffCompress(packed, &room, text, sizeof text, 1, 0, 30)) return 1;
    if (BZ2_bzBuffToBuffDecompress(back, &size, packed, room, 0, 0)) return 2;
    if (size != sizeof text || memcmp(text, back, size)) return 3;
    for (unsigned i = 0; i < room; i++) sum = sum * 31 + (unsigned char)packed[i];
    printf("%u %08x\n", room, sum);
    return 0;
}
