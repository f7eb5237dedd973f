/*
 * OpenSSL, CVE-2015-3196: the hint of one connection is kept in what all connections share.
 *
 * Versions 1.0.0 before 1.0.0t, 1.0.1 before 1.0.1p, 1.0.2 before 1.0.2d; advisory of 3 December 2015. A client that gets
 * a ServerKeyExchange message with a hint of which pre-shared key to use stored it in its SSL_CTX, the parent of all
 * connections of a program, where it replaced the last one: free, then store. Two connections in two threads could free
 * the same hint.
 *
 * The extract has the parent with its hint, the connections, and the two steps in the order of ssl/s3_clnt.c; the message
 * is the hint itself. The callback that looks for the key only asks for the hint's length.
 *
 * One preemption is enough: between free and store. The other connection frees the hint again. None is not, as whole
 * messages, one after the other, do no harm.
 *
 * heisen: bug=use-after-free preemptions=1 class=use-after-free
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct context {
    char *psk_identity_hint;
};

struct connection {
    struct context *context;
    const char *message;
    size_t key_length;
};

static size_t psk_client_callback(const char *hint) {
    return strlen(hint);
}

static void get_key_exchange(struct connection *ssl) {
    if (ssl->context->psk_identity_hint != NULL)
        free(ssl->context->psk_identity_hint); /* fix */
    ssl->context->psk_identity_hint = strdup(ssl->message); /* preempt here, fix */
    ssl->key_length = psk_client_callback(ssl->context->psk_identity_hint);
}

static void *client(void *ssl) {
    get_key_exchange(ssl);
    return NULL;
}

int main(void) {
    struct context context = {strdup("default")};
    struct connection connections[2] = {{&context, "one", 0}, {&context, "another", 0}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, client, &connections[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    free(context.psk_identity_hint);
    return 0;
}
