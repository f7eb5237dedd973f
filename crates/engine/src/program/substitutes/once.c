/* The function that std::call_once of libstdc++ passes to pthread_once. */

extern __thread void (*_ZSt11__once_call)(void);

__attribute__((weak, visibility("hidden"))) void __once_proxy(void) {
    _ZSt11__once_call();
}
