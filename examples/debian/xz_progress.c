/*
 * Decodes a .xz stream of two blocks with liblzma's threaded decoder, and asks how much it has read.
 *
 * liblzma 5.4.1 as it was released sometimes tells too little: the main thread adds the length of a block's header to a sum
 * that other threads add to under a mutex, without it (XZ Utils, pull request 243, put right by commit
 * c6e3aadbb510e44cecfe870408ecfea1d1ca792c). One preemption is enough, between its read and its write of the sum.
 *
 * heisen: bug=assertion preemptions=1
 */
#include <assert.h>
#include <lzma.h>
#include <stdint.h>
#include <string.h>

enum { SIZE = 64, BLOCKS = 2, MEMORY = 1 << 24 };

static uint8_t plain[BLOCKS * SIZE], packed[4096], again[BLOCKS * SIZE];

static size_t pack(void) {
    lzma_options_lzma options;
    lzma_lzma_preset(&options, 0);
    options.dict_size = 4096;
    lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
    lzma_stream_flags flags = {.check = LZMA_CHECK_CRC32};
    lzma_ret ret = lzma_stream_header_encode(&flags, packed);
    assert(ret == LZMA_OK);
    size_t length = LZMA_STREAM_HEADER_SIZE;
    lzma_index *index = lzma_index_init(NULL);
    for (int i = 0; i < BLOCKS; i++) {
        /* Only a block whose header tells its sizes is given to a thread. */
        lzma_block block = {.check = LZMA_CHECK_CRC32, .filters = filters};
        ret = lzma_block_buffer_encode(&block, NULL, plain + i * SIZE, SIZE, packed, &length, sizeof packed);
        assert(ret == LZMA_OK);
        ret = lzma_index_append(index, NULL, lzma_block_unpadded_size(&block), block.uncompressed_size);
        assert(ret == LZMA_OK);
    }
    ret = lzma_index_buffer_encode(index, packed, &length, sizeof packed);
    assert(ret == LZMA_OK);
    flags.backward_size = lzma_index_size(index);
    lzma_index_end(index, NULL);
    ret = lzma_stream_footer_encode(&flags, packed + length);
    assert(ret == LZMA_OK);
    return length + LZMA_STREAM_HEADER_SIZE;
}

int main(void) {
    for (int i = 0; i < BLOCKS * SIZE; i++)
        plain[i] = (uint8_t)(i * 37 + i / 7);
    size_t length = pack();

    lzma_stream stream = LZMA_STREAM_INIT;
    lzma_mt mt = {.threads = 2, .memlimit_threading = MEMORY, .memlimit_stop = MEMORY};
    lzma_ret ret = lzma_stream_decoder_mt(&stream, &mt);
    assert(ret == LZMA_OK);
    stream.next_in = packed;
    stream.avail_in = length;
    stream.next_out = again;
    stream.avail_out = sizeof again;
    ret = lzma_code(&stream, LZMA_RUN);
    while (ret == LZMA_OK)
        ret = lzma_code(&stream, LZMA_FINISH);
    assert(ret == LZMA_STREAM_END);
    assert(memcmp(plain, again, sizeof again) == 0);
    uint64_t in, out;
    lzma_get_progress(&stream, &in, &out);
    assert(in == length);
    assert(out == sizeof again);
    lzma_end(&stream);
    return 0;
}
