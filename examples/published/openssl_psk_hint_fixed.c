/*
 * openssl_psk_hint.c put right, as in OpenSSL 1.0.0t, 1.0.1p and 1.0.2d: the hint of a connection is kept in its own
 * session; that of the parent is only read.
 *
 * heisen: clean
 */
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct context {
    char *psk_identity_hint;
};

struct session {
    char *psk_identity_hint;
};

struct connection {
    struct context *context;
    const char *message;
    size_t key_length;
    struct session session;
};

static size_t psk_client_callback(const char *hint) {
    return strlen(hint);
}

static void get_key_exchange(struct connection *ssl) {
    if (ssl->session.psk_identity_hint != NULL)
        free(ssl->session.psk_identity_hint);
    ssl->session.psk_identity_hint = strdup(ssl->message);
    ssl->key_length = psk_client_callback(ssl->session.psk_identity_hint);
}

static void *client(void *ssl) {
    get_key_exchange(ssl);
    return NULL;
}

int main(void) {
    struct context context = {strdup("default")};
    struct connection connections[2] = {{&context, "one", 0, {NULL}}, {&context, "another", 0, {NULL}}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, client, &connections[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert(connections[i].key_length == strlen(connections[i].message));
        free(connections[i].session.psk_identity_hint);
    }
    free(context.psk_identity_hint);
    return 0;
}
