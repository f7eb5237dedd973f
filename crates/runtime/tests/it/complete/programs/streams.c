/* Streams that a thread keeps locked while others use them. */
#include "cases.h"
#include <wchar.h>

static FILE *file;

static void *writes(void *arg)
{
    const char *word = arg;
    flockfile(file);
    flockfile(file);
    for (const char *at = word; *at; at++) {
        putc(*at, file);
        sched_yield();
    }
    funlockfile(file);
    sched_yield();
    fprintf(file, "%.1f;", 0.5);
    funlockfile(file);
    return NULL;
}

static void *writes_at_once(void *arg)
{
    fprintf(file, "%s%.1f;", (char *)arg, 0.5);
    return NULL;
}

static char text[256];

static void make(void)
{
    file = fmemopen(text, sizeof text, "w");
    assert(file != NULL);
}

static void pieces_stay_together(void)
{
    make();
    pthread_t a = start(writes, "abc"), b = start(writes, "de"), c = start(writes_at_once, "fg");
    join(a), join(b), join(c);
    assert(fclose(file) == 0);
    /* All orders of the three pieces, each in one. */
    assert(strlen(text) == 3 + 2 + 2 + 3 * 4);
    assert(strstr(text, "abc0.5;") && strstr(text, "de0.5;") && strstr(text, "fg0.5;"));
}

static void *tries(void *arg)
{
    assert(ftrylockfile(file) != 0);
    return arg;
}

static void trying(void)
{
    make();
    assert(ftrylockfile(file) == 0 && ftrylockfile(file) == 0);
    join(start(tries, NULL));
    funlockfile(file);
    join(start(tries, NULL));
    funlockfile(file);
    assert(ftrylockfile(file) == 0);
    funlockfile(file);
    fclose(file);
}

/* Every way to use a stream waits for it. */
static int released;

static void *uses(void *arg)
{
    int way = (int)(intptr_t)arg;
    size_t size = 0;
    char *line = NULL, buffer[8];
    switch (way) {
    case 0: fputs("x", file); break;
    case 1: fputc('x', file); break;
    case 2: fwrite("xy", 1, 2, file); break;
    case 3: fprintf(file, "%s %f %d %d %d %d %f", "x", 1.0, 1, 2, 3, 4, 2.5); break;
    case 4: fflush(file); break;
    case 5: fgets(buffer, sizeof buffer, file); break;
    case 6: getline(&line, &size, file); break;
    case 7: fread(buffer, 1, 1, file); break;
    case 8: ungetc('x', file); break;
    case 9: ftell(file); break;
    case 10: fseek(file, 0, SEEK_SET); break;
    case 11: fgetc(file); break;
    case 12: feof(file); break;
    case 13: setvbuf(file, NULL, _IONBF, 0); break;
    case 14: getdelim(&line, &size, 'x', file); break;
    case 15: ferror(file); break;
    }
    assert(released);
    free(line);
    return NULL;
}

static void every_way_waits(void)
{
    for (int way = 0; way < 16; way++) {
        file = fmemopen(text, sizeof text, "r+");
        released = 0;
        flockfile(file);
        pthread_t t = start(uses, (void *)(intptr_t)way);
        sched_yield();
        released = 1;
        funlockfile(file);
        join(t);
        fclose(file);
    }
}

static void *prints(void *arg)
{
    printf("%g\n", 2.5);
    puts("y");
    putchar('z');
    assert(released);
    return arg;
}

static void standard_output(void)
{
    assert(freopen("/dev/null", "w", stdout) != NULL);
    flockfile(stdout);
    pthread_t t = start(prints, NULL);
    sched_yield();
    printf("mine\n");
    released = 1;
    funlockfile(stdout);
    join(t);
}

/* Two threads that lock two streams in opposite order. */
static FILE *other;

static void *one_way(void *arg)
{
    flockfile(file);
    flockfile(other);
    funlockfile(other);
    funlockfile(file);
    return arg;
}

static void crosswise(void)
{
    make();
    other = fmemopen(NULL, 16, "w");
    pthread_t t = start(one_way, NULL);
    flockfile(other);
    sched_yield();
    fputc('x', file);
    funlockfile(other);
    join(t);
}

CASES(CASE(pieces_stay_together), CASE(trying), CASE(every_way_waits), CASE(standard_output), CASE(crosswise))
