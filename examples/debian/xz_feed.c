/*
 * Decodes a damaged .xz stream of one block with liblzma's threaded decoder, which gets it in two pieces.
 *
 * liblzma 5.4.1 as it was released is caught by CVE-2025-31115 here: see examples/published/xz_decoder.c for what goes
 * wrong. With the argument `sound` nothing is damaged.
 *
 * heisen: bug=crash preemptions=1
 */
#include <assert.h>
#include <lzma.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 256, CUT = 40, DATA = 28, MEMORY = 1 << 24 };

static uint8_t plain[SIZE], packed[2 * SIZE], again[SIZE];

int main(int argc, char **argv) {
    int sound = argc > 1 && strcmp(argv[1], "sound") == 0;
    for (int i = 0; i < SIZE; i++)
        plain[i] = (uint8_t)(i * 37 + i / 7);
    lzma_options_lzma options;
    lzma_lzma_preset(&options, 0);
    options.dict_size = 4096;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    size_t length = 0;
    lzma_ret ret = lzma_stream_buffer_encode(filters, LZMA_CHECK_CRC32, NULL, plain, SIZE, packed, &length, sizeof packed);
    assert(ret == LZMA_OK);
    if (!sound)
        packed[DATA] = 0x7f; /* No chunk of LZMA2 begins so. */

    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_mt mt = {.threads = 2, .memlimit_threading = MEMORY, .memlimit_stop = MEMORY};
    ret = lzma_stream_decoder_mt(&stream, &mt);
    assert(ret == LZMA_OK);
    stream.next_in = packed;
    stream.avail_in = CUT;
    stream.next_out = again;
    stream.avail_out = SIZE;
    ret = lzma_code(&stream, LZMA_RUN);
    if (ret == LZMA_OK)
        stream.avail_in = length - CUT;
    while (ret == LZMA_OK)
        ret = lzma_code(&stream, LZMA_FINISH);
    assert(ret == (sound ? LZMA_STREAM_END : LZMA_DATA_ERROR));
    assert(!sound || memcmp(plain, again, SIZE) == 0);
    lzma_end(&stream);
    return 0;
}
