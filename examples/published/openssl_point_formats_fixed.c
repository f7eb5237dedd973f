/*
 * openssl_point_formats.c put right, as in OpenSSL 1.0.0n and 1.0.1i: a session that was resumed is left as it is.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct session {
    size_t point_formats_length;
    unsigned char *point_formats;
};

struct connection {
    struct session *session;
    const unsigned char *extension;
    size_t length;
    bool hit;
};

static void parse_server_hello(struct connection *ssl) {
    if (ssl->hit)
        return;
    ssl->session->point_formats_length = 0;
    if (ssl->session->point_formats != NULL)
        free(ssl->session->point_formats);
    ssl->session->point_formats = malloc(ssl->length);
    ssl->session->point_formats_length = ssl->length;
    memcpy(ssl->session->point_formats, ssl->extension, ssl->length);
}

static void *client(void *ssl) {
    parse_server_hello(ssl);
    return NULL;
}

int main(void) {
    static const unsigned char formats[] = {0, 1, 2};
    struct session session = {0, NULL};
    struct connection first = {&session, formats, sizeof formats, false};
    parse_server_hello(&first);

    struct connection resumed[2] = {{&session, formats, 3, true}, {&session, formats, 3, true}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, client, &resumed[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(session.point_formats_length == sizeof formats && session.point_formats[2] == 2);
    free(session.point_formats);
    return 0;
}
