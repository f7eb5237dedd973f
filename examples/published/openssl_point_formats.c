/*
 * OpenSSL, CVE-2014-3509: a resumed session is changed while another connection uses it.
 *
 * Versions 1.0.0 before 1.0.0n and 1.0.1 before 1.0.1i; advisory of 6 August 2014. A client stored the list of elliptic
 * curve point formats of a ServerHello in the session, also if it had resumed the session and so shared it with other
 * connections. A thread could write the list into memory that another had freed.
 *
 * The extract has the shared session and the steps of ssl_parse_serverhello_tlsext in ssl/t1_lib.c in their order: length
 * to zero, free, allocate, set the length, copy. The extension of the message is an array.
 *
 * One preemption is enough, before the copy: the other connection frees the list that was just allocated. Another one is
 * between free and allocate, where the other frees the same list. None is not, as whole messages, one after the other, do
 * no harm.
 *
 * heisen: bug=use-after-free preemptions=1 class=use-after-free
 */
#include <pthread.h>
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
};

static void parse_server_hello(struct connection *ssl) {
    ssl->session->point_formats_length = 0;
    if (ssl->session->point_formats != NULL)
        free(ssl->session->point_formats); /* fix */
    ssl->session->point_formats = malloc(ssl->length); /* preempt here */
    ssl->session->point_formats_length = ssl->length;
    memcpy(ssl->session->point_formats, ssl->extension, ssl->length); /* or here, fix */
}

static void *client(void *ssl) {
    parse_server_hello(ssl);
    return NULL;
}

int main(void) {
    static const unsigned char formats[] = {0, 1, 2};
    struct session session = {0, NULL};
    struct connection first = {&session, formats, sizeof formats};
    parse_server_hello(&first);

    struct connection resumed[2] = {{&session, formats, 3}, {&session, formats, 3}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, client, &resumed[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(session.point_formats);
    return 0;
}
