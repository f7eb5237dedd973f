/* lz4: round trips by the fast and the slow compressor, and in a frame with a checksum. */
#include "driver.h"
#include <lz4.h>
#include <lz4frame.h>
#include <lz4hc.h>

enum { LENGTH = 2000 };

static int once(void) {
    static char text[LENGTH], packed[3000], back[LENGTH], frame[200000];
    fill(text, LENGTH);
    int sizes[2] = {LZ4_compress_default(text, packed, LENGTH, sizeof packed)};
    if (LZ4_decompress_safe(packed, back, sizes[0], LENGTH) != LENGTH || memcmp(text, back, LENGTH)) return 1;
    sizes[1] = LZ4_compress_HC(text, packed, LENGTH, sizeof packed, 9);
    if (LZ4_decompress_safe(packed, back, sizes[1], LENGTH) != LENGTH || memcmp(text, back, LENGTH)) return 2;
    unsigned sum = 0;
    for (int i = 0; i < sizes[1]; i++) sum = sum * 31 + (unsigned char)packed[i];
    LZ4F_preferences_t preferences = {{0, 0, LZ4F_contentChecksumEnabled}};
    size_t size = LZ4F_compressFrame(frame, sizeof frame, text, LENGTH, &preferences);
    LZ4F_dctx *context;
    if (LZ4F_isError(size) || LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) return 3;
    size_t out = LENGTH, in = size;
    if (LZ4F_decompress(context, back, &out, frame, &in, NULL) || out != LENGTH || memcmp(text, back, LENGTH)) return 4;
    LZ4F_freeDecompressionContext(context);
    printf("%d %d %08x %zu\n", sizes[0], sizes[1], sum, size);
    return 0;
}
