/*
 * Two transfers in two threads, with handles that share a list of hosts with strict transport security, in which one entry
 * has expired. Nothing answers at the port that they try.
 *
 * libcurl 7.88.1 is caught by CVE-2023-27537 here: see examples/published/curl_hsts.c for what goes wrong. With the argument
 * `own` each handle has a list of its own, as the manual of 8.0.0 asks.
 *
 * heisen: bug=use-after-free preemptions=1
 */
#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t locks[CURL_LOCK_DATA_LAST];

static void lock(CURL *handle, curl_lock_data data, curl_lock_access access, void *user) {
    (void)handle, (void)access, (void)user;
    pthread_mutex_lock(&locks[data]);
}

static void unlock(CURL *handle, curl_lock_data data, void *user) {
    (void)handle, (void)user;
    pthread_mutex_unlock(&locks[data]);
}

/* Tells libcurl of one host, then that there are no more. */
static CURLSTScode read_host(CURL *handle, struct curl_hstsentry *entry, void *left) {
    (void)handle;
    if (*(int *)left == 0)
        return CURLSTS_DONE;
    --*(int *)left;
    strcpy(entry->name, "old.example");
    strcpy(entry->expire, "20200101 00:00:00");
    entry->includeSubDomains = 0;
    return CURLSTS_OK;
}

static CURLSH *new_share(void) {
    CURLSH *share = curl_share_init();
    curl_share_setopt(share, CURLSHOPT_LOCKFUNC, lock);
    curl_share_setopt(share, CURLSHOPT_UNLOCKFUNC, unlock);
    CURLSHcode code = curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_HSTS);
    assert(code == CURLSHE_OK);
    return share;
}

static void *transfer(void *handle) {
    curl_easy_perform(handle);
    return NULL;
}

int main(int argc, char **argv) {
    int own = argc > 1 && strcmp(argv[1], "own") == 0;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
        pthread_mutex_init(&locks[i], NULL);
    struct curl_slist *addresses = curl_slist_append(NULL, "host.invalid:1:127.0.0.1");
    CURLSH *shares[2] = {new_share(), NULL};
    shares[1] = own ? new_share() : shares[0];
    CURL *handles[2];
    int left = 1;
    for (int i = 0; i < 2; i++) {
        handles[i] = curl_easy_init();
        curl_easy_setopt(handles[i], CURLOPT_SHARE, shares[i]);
        curl_easy_setopt(handles[i], CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(handles[i], CURLOPT_RESOLVE, addresses);
        curl_easy_setopt(handles[i], CURLOPT_URL, "http://host.invalid:1/");
    }
    curl_easy_setopt(handles[0], CURLOPT_HSTSREADFUNCTION, read_host);
    curl_easy_setopt(handles[0], CURLOPT_HSTSREADDATA, &left);

    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, transfer, handles[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < 2; i++)
        curl_easy_cleanup(handles[i]);
    curl_share_cleanup(shares[0]);
    if (own)
        curl_share_cleanup(shares[1]);
    curl_slist_free_all(addresses);
    curl_global_cleanup();
    return 0;
}
