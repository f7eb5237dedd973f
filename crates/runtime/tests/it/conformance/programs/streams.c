/* Streams that a thread keeps for itself: whoever else uses one of them, by whatever function, waits. */
#include "results.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include <wchar.h>

static FILE *file;
static sem_t is_kept;
static int over;

/* A file in memory under the stream, which may be a standard one; nobody else has it. */
static void over_memory(FILE *standard, const char *text)
{
    int fd = memfd_create("stream", 0);
    assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && lseek(fd, 0, SEEK_SET) == 0);
    file = standard;
    if (standard == NULL)
        file = fdopen(fd, "r+");
    else
        assert(fflush(standard) == 0 && dup2(fd, fileno(standard)) >= 0);
    assert(file != NULL);
}

/* Adds to the result what lies below the stream. */
static void say_what_was_written(void)
{
    char text[200] = "";
    assert(fflush(file) == 0);
    ssize_t length = pread(fileno(file), text, sizeof text - 1, 0);
    assert(length >= 0);
    for (ssize_t i = 0; i < length; i++)
        say("%c", text[i] == '\n' ? '/' : text[i] == 0 ? '.' : text[i]);
}

/* ---- output ---- */

static void *keeps_writing(void *arg)
{
    flockfile(file);
    putc_unlocked('a', file);
    point();
    putc_unlocked('b', file);
    funlockfile(file);
    return arg;
}

static void *keeps_writing_wide(void *arg)
{
    flockfile(file);
    putwc_unlocked(L'a', file);
    point();
    putwc_unlocked(L'b', file);
    funlockfile(file);
    return arg;
}

/* The call writes the words before or after those of a thread that keeps the stream, never between them. */
#define WRITES_BESIDE(keeper, name, stream, words, call)    \
    static void *name##_calls(void *arg)                    \
    {                                                       \
        assert(call);                                       \
        return arg;                                         \
    }                                                       \
    CASE(name, "ab" words, words "ab")                      \
    {                                                       \
        over_memory(stream, "");                            \
        beside(keeper, NULL, name##_calls, NULL);           \
        say_what_was_written();                             \
    }
#define WRITES(name, stream, words, call) WRITES_BESIDE(keeps_writing, name, stream, words, call)
#define WRITES_WIDE(name, stream, words, call) WRITES_BESIDE(keeps_writing_wide, name, stream, words, call)

/* What a compiler makes of calls whose sizes it checks, and other names of old. */
extern int __fprintf_chk(FILE *stream, int flag, const char *format, ...);
extern int __vfprintf_chk(FILE *stream, int flag, const char *format, va_list list);
extern int __printf_chk(int flag, const char *format, ...);
extern int __vprintf_chk(int flag, const char *format, va_list list);
extern char *__fgets_chk(char *to, size_t size, int n, FILE *stream);
extern size_t __fread_chk(void *to, size_t room, size_t size, size_t n, FILE *stream);
extern int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...);
extern int __vfwprintf_chk(FILE *stream, int flag, const wchar_t *format, va_list list);
extern int __wprintf_chk(int flag, const wchar_t *format, ...);
extern int __vwprintf_chk(int flag, const wchar_t *format, va_list list);
extern wchar_t *__fgetws_chk(wchar_t *to, size_t size, int n, FILE *stream);
extern int _IO_getc(FILE *stream);
extern int _IO_putc(int c, FILE *stream);
extern void _IO_flockfile(FILE *stream);
extern int _IO_ftrylockfile(FILE *stream);
extern void _IO_funlockfile(FILE *stream);

/* Calls one of the functions that take a list of arguments. */
#define WITH_LIST(name, type, call)             \
    static int name(const type *format, ...)    \
    {                                           \
        va_list list;                           \
        va_start(list, format);                 \
        int result = call;                      \
        va_end(list);                           \
        return result;                          \
    }
WITH_LIST(list_to_stream, char, vfprintf(file, format, list))
WITH_LIST(list_to_stream_checked, char, __vfprintf_chk(file, 1, format, list))
WITH_LIST(list_to_output, char, vprintf(format, list))
WITH_LIST(list_to_output_checked, char, __vprintf_chk(1, format, list))
WITH_LIST(wide_list_to_stream, wchar_t, vfwprintf(file, format, list))
WITH_LIST(wide_list_to_stream_checked, wchar_t, __vfwprintf_chk(file, 1, format, list))
WITH_LIST(wide_list_to_output, wchar_t, vwprintf(format, list))
WITH_LIST(wide_list_to_output_checked, wchar_t, __vwprintf_chk(1, format, list))

WRITES(by_fprintf, NULL, "x1.5", fprintf(file, "x%.1f", 1.5) == 4)
WRITES(by_fprintf_chk, NULL, "x1.5", __fprintf_chk(file, 1, "x%.1f", 1.5) == 4)
WRITES(by_vfprintf, NULL, "x1.5", list_to_stream("x%.1f", 1.5) == 4)
WRITES(by_vfprintf_chk, NULL, "x1.5", list_to_stream_checked("x%.1f", 1.5) == 4)
WRITES(by_fputs, NULL, "xyz", fputs("xyz", file) >= 0)
WRITES(by_fputc, NULL, "x", fputc('x', file) == 'x')
WRITES(by_putc, NULL, "x", putc('x', file) == 'x')
WRITES(by_io_putc, NULL, "x", _IO_putc('x', file) == 'x')
WRITES(by_putw, NULL, "wxyz", putw('w' | 'x' << 8 | 'y' << 16 | 'z' << 24, file) == 0)
WRITES(by_fwrite, NULL, "wxyz", fwrite("wxyz", 2, 2, file) == 2)
WRITES(by_printf, stdout, "x1.5", printf("x%.1f", 1.5) == 4)
WRITES(by_printf_chk, stdout, "x1.5", __printf_chk(1, "x%.1f", 1.5) == 4)
WRITES(by_vprintf, stdout, "x1.5", list_to_output("x%.1f", 1.5) == 4)
WRITES(by_vprintf_chk, stdout, "x1.5", list_to_output_checked("x%.1f", 1.5) == 4)
WRITES(by_puts, stdout, "x/", puts("x") >= 0)
WRITES(by_putchar, stdout, "x", putchar('x') == 'x')
/* Before anything else is written to it, standard error is written to past its stream. */
WRITES(by_perror, (fwide(stderr, -1), stderr), "x: No such file or directory/", (errno = ENOENT, perror("x"), 1))
WRITES_WIDE(by_fwprintf, NULL, "x1.5", fwprintf(file, L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_vfwprintf, NULL, "x1.5", wide_list_to_stream(L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_fwprintf_chk, NULL, "x1.5", __fwprintf_chk(file, 1, L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_vfwprintf_chk, NULL, "x1.5", wide_list_to_stream_checked(L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_fputws, NULL, "xyz", fputws(L"xyz", file) >= 0)
WRITES_WIDE(by_fputwc, NULL, "x", fputwc(L'x', file) == L'x')
WRITES_WIDE(by_putwc, NULL, "x", putwc(L'x', file) == L'x')
WRITES_WIDE(by_wprintf, stdout, "x1.5", wprintf(L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_vwprintf, stdout, "x1.5", wide_list_to_output(L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_wprintf_chk, stdout, "x1.5", __wprintf_chk(1, L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_vwprintf_chk, stdout, "x1.5", wide_list_to_output_checked(L"x%.1f", 1.5) == 4)
WRITES_WIDE(by_putwchar, stdout, "x", putwchar(L'x') == L'x')

/* ---- input ---- */

static char kept[3], got[20];
static wchar_t wide[20];

static void *keeps_reading(void *arg)
{
    flockfile(file);
    kept[0] = getc_unlocked(file);
    point();
    kept[1] = getc_unlocked(file);
    funlockfile(file);
    return arg;
}

static void *keeps_reading_wide(void *arg)
{
    flockfile(file);
    kept[0] = getwc_unlocked(file);
    point();
    kept[1] = getwc_unlocked(file);
    funlockfile(file);
    return arg;
}

/* The thread that keeps the stream reads two letters in a row; the call reads what comes before them or after. */
#define READS_BESIDE(keeper, name, stream, first, second, call) \
    static void *name##_calls(void *arg)                        \
    {                                                           \
        assert(call);                                           \
        return arg;                                             \
    }                                                           \
    CASE(name, first, second)                                   \
    {                                                           \
        over_memory(stream, "abcdefgh\nijklmn\n");              \
        beside(keeper, NULL, name##_calls, NULL);               \
        for (int i = 0; i < 20 && wide[i] != 0; i++)            \
            got[i] = wide[i];                                   \
        got[strcspn(got, "\n")] = 0;                            \
        say("%s %s", kept, got);                                \
    }
#define READS(name, stream, first, second, call) READS_BESIDE(keeps_reading, name, stream, first, second, call)
#define READS_WIDE(name, stream, first, second, call) READS_BESIDE(keeps_reading_wide, name, stream, first, second, call)

/* What the C library has a name for in C89 and another one in C99, which the header puts in the place of the first. */
extern int __isoc99_fscanf(FILE *stream, const char *format, ...);
extern int __isoc99_vfscanf(FILE *stream, const char *format, va_list list);
extern int __isoc99_scanf(const char *format, ...);
extern int __isoc99_vscanf(const char *format, va_list list);
extern int __isoc99_fwscanf(FILE *stream, const wchar_t *format, ...);
extern int __isoc99_vfwscanf(FILE *stream, const wchar_t *format, va_list list);
extern int __isoc99_wscanf(const wchar_t *format, ...);
extern int __isoc99_vwscanf(const wchar_t *format, va_list list);
extern int c89_fscanf(FILE *stream, const char *format, ...) __asm__("fscanf");
extern int c89_vfscanf(FILE *stream, const char *format, va_list list) __asm__("vfscanf");
extern int c89_scanf(const char *format, ...) __asm__("scanf");
extern int c89_vscanf(const char *format, va_list list) __asm__("vscanf");
extern int c89_fwscanf(FILE *stream, const wchar_t *format, ...) __asm__("fwscanf");
extern int c89_vfwscanf(FILE *stream, const wchar_t *format, va_list list) __asm__("vfwscanf");
extern int c89_wscanf(const wchar_t *format, ...) __asm__("wscanf");
extern int c89_vwscanf(const wchar_t *format, va_list list) __asm__("vwscanf");
#define fscanf(...) c89_fscanf(__VA_ARGS__)
#define vfscanf(...) c89_vfscanf(__VA_ARGS__)
#define scanf(...) c89_scanf(__VA_ARGS__)
#define vscanf(...) c89_vscanf(__VA_ARGS__)
#define fwscanf(...) c89_fwscanf(__VA_ARGS__)
#define vfwscanf(...) c89_vfwscanf(__VA_ARGS__)
#define wscanf(...) c89_wscanf(__VA_ARGS__)
#define vwscanf(...) c89_vwscanf(__VA_ARGS__)

WITH_LIST(list_from_stream, char, vfscanf(file, format, list))
WITH_LIST(list_from_stream_c99, char, __isoc99_vfscanf(file, format, list))
WITH_LIST(list_from_input, char, vscanf(format, list))
WITH_LIST(list_from_input_c99, char, __isoc99_vscanf(format, list))
WITH_LIST(wide_list_from_stream, wchar_t, vfwscanf(file, format, list))
WITH_LIST(wide_list_from_stream_c99, wchar_t, __isoc99_vfwscanf(file, format, list))
WITH_LIST(wide_list_from_input, wchar_t, vwscanf(format, list))
WITH_LIST(wide_list_from_input_c99, wchar_t, __isoc99_vwscanf(format, list))

static char *line;
static size_t room;

READS(by_fgetc, NULL, "ab c", "bc a", (got[0] = fgetc(file)) > 0)
READS(by_getc, NULL, "ab c", "bc a", (got[0] = getc(file)) > 0)
READS(by_io_getc, NULL, "ab c", "bc a", (got[0] = _IO_getc(file)) > 0)
READS(by_getw, NULL, "ab cdef", "ef abcd", (*(int *)got = getw(file)) != EOF)
READS(by_fgets, NULL, "ab cdefgh", "ij abcdefgh", fgets(got, sizeof got, file) == got)
READS(by_fgets_chk, NULL, "ab cdefgh", "ij abcdefgh", __fgets_chk(got, sizeof got, sizeof got, file) == got)
READS(by_fread, NULL, "ab cdef", "ef abcd", fread(got, 2, 2, file) == 2)
READS(by_fread_chk, NULL, "ab cdef", "ef abcd", __fread_chk(got, sizeof got, 2, 2, file) == 2)
READS(by_getline, NULL, "ab cdefgh", "ij abcdefgh", getline(&line, &room, file) > 6 && strcpy(got, line))
READS(by_getdelim, NULL, "ab cd", "ef abcd", getdelim(&line, &room, 'd', file) > 1 && strcpy(got, line))
READS(by_old_getdelim, NULL, "ab cd", "ef abcd", __getdelim(&line, &room, 'd', file) > 1 && strcpy(got, line))
READS(by_fscanf, NULL, "ab cde", "de abc", fscanf(file, "%3s", got) == 1)
READS(by_fscanf_c99, NULL, "ab cde", "de abc", __isoc99_fscanf(file, "%3s", got) == 1)
READS(by_vfscanf, NULL, "ab cde", "de abc", list_from_stream("%3s", got) == 1)
READS(by_vfscanf_c99, NULL, "ab cde", "de abc", list_from_stream_c99("%3s", got) == 1)
READS(by_getchar, stdin, "ab c", "bc a", (got[0] = getchar()) > 0)
READS(by_scanf, stdin, "ab cde", "de abc", scanf("%3s", got) == 1)
READS(by_scanf_c99, stdin, "ab cde", "de abc", __isoc99_scanf("%3s", got) == 1)
READS(by_vscanf, stdin, "ab cde", "de abc", list_from_input("%3s", got) == 1)
READS(by_vscanf_c99, stdin, "ab cde", "de abc", list_from_input_c99("%3s", got) == 1)
READS_WIDE(by_fgetwc, NULL, "ab c", "bc a", (got[0] = fgetwc(file)) > 0)
READS_WIDE(by_getwc, NULL, "ab c", "bc a", (got[0] = getwc(file)) > 0)
READS_WIDE(by_fgetws, NULL, "ab cdefgh", "ij abcdefgh", fgetws(wide, 20, file) == wide)
READS_WIDE(by_fgetws_chk, NULL, "ab cdefgh", "ij abcdefgh", __fgetws_chk(wide, 20, 20, file) == wide)
READS_WIDE(by_fwscanf_c99, NULL, "ab cde", "de abc", __isoc99_fwscanf(file, L"%3s", got) == 1)
READS_WIDE(by_vfwscanf, NULL, "ab cde", "de abc", wide_list_from_stream(L"%3s", got) == 1)
READS_WIDE(by_vfwscanf_c99, NULL, "ab cde", "de abc", wide_list_from_stream_c99(L"%3s", got) == 1)
READS_WIDE(by_fwscanf, NULL, "ab cde", "de abc", fwscanf(file, L"%3s", got) == 1)
READS_WIDE(by_getwchar, stdin, "ab c", "bc a", (got[0] = getwchar()) > 0)
READS_WIDE(by_wscanf_c99, stdin, "ab cde", "de abc", __isoc99_wscanf(L"%3s", got) == 1)
READS_WIDE(by_vwscanf, stdin, "ab cde", "de abc", wide_list_from_input(L"%3s", got) == 1)
READS_WIDE(by_vwscanf_c99, stdin, "ab cde", "de abc", wide_list_from_input_c99(L"%3s", got) == 1)
READS_WIDE(by_wscanf, stdin, "ab cde", "de abc", wscanf(L"%3s", got) == 1)

/* ---- everything else ---- */

static void *keeps_a_while(void *arg)
{
    flockfile(file);
    sem_post(&is_kept);
    point();
    over = 1;
    funlockfile(file);
    return arg;
}

/* The call begins while another thread keeps the stream, and returns after it has given the stream up. */
#define FOLLOWS(name, call)                             \
    CASE(name, "over")                                  \
    {                                                   \
        over_memory(NULL, "abc");                       \
        fpos_t start;                                   \
        fpos64_t start64;                               \
        assert(fgetpos(file, &start) == 0);             \
        assert(fgetpos64(file, &start64) == 0);         \
        assert(fgetc(file) == 'a');                     \
        pthread_t t = start_keeper();                   \
        assert(call);                                   \
        say("%s", over ? "over" : "too early");         \
        join(t);                                        \
    }

static pthread_t start_keeper(void)
{
    pthread_t t = start(keeps_a_while, NULL);
    sem_wait(&is_kept);
    return t;
}

static char buffer[BUFSIZ];

FOLLOWS(then_fflush, fflush(file) == 0)
FOLLOWS(then_fclose, fclose(file) == 0)
FOLLOWS(then_freopen, freopen("/dev/zero", "r", file) == file && fgetc(file) == 0)
FOLLOWS(then_freopen64, freopen64("/dev/zero", "r", file) == file && fgetc(file) == 0)
FOLLOWS(then_fseek, fseek(file, 2, SEEK_SET) == 0 && fgetc(file) == 'c')
FOLLOWS(then_fseeko, fseeko(file, 1, SEEK_CUR) == 0 && fgetc(file) == 'c')
FOLLOWS(then_fseeko64, fseeko64(file, -1, SEEK_END) == 0 && fgetc(file) == 'c')
FOLLOWS(then_ftell, ftell(file) == 1)
FOLLOWS(then_ftello, ftello(file) == 1)
FOLLOWS(then_ftello64, ftello64(file) == 1)
FOLLOWS(then_rewind, (rewind(file), fgetc(file) == 'a'))
FOLLOWS(then_fgetpos, fgetpos(file, &start) == 0 && fgetc(file) == 'b' && fsetpos(file, &start) == 0 && fgetc(file) == 'b')
FOLLOWS(then_fgetpos64, fgetpos64(file, &start64) == 0 && fgetc(file) == 'b')
FOLLOWS(then_fsetpos, fsetpos(file, &start) == 0 && fgetc(file) == 'a')
FOLLOWS(then_fsetpos64, fsetpos64(file, &start64) == 0 && fgetc(file) == 'a')
FOLLOWS(then_setvbuf, setvbuf(file, buffer, _IOFBF, sizeof buffer) == 0)
FOLLOWS(then_setbuf, (setbuf(file, buffer), 1))
FOLLOWS(then_setbuffer, (setbuffer(file, buffer, 100), 1))
FOLLOWS(then_setlinebuf, (setlinebuf(file), 1))
FOLLOWS(then_feof, feof(file) == 0)
FOLLOWS(then_ferror, ferror(file) == 0)
FOLLOWS(then_clearerr, (clearerr(file), 1))
FOLLOWS(then_ungetc, ungetc('x', file) == 'x' && fgetc(file) == 'x' && fgetc(file) == 'b')

static sem_t told;

static void *keeps_until_told(void *arg)
{
    flockfile(file);
    sem_post(&is_kept);
    sem_wait(&told);
    funlockfile(file);
    return arg;
}

CASE(a_wide_letter_is_put_back, "over")
{
    over_memory(NULL, "abc");
    assert(fgetwc(file) == L'a');
    pthread_t t = start_keeper();
    assert(ungetwc(L'x', file) == L'x');
    say("%s", over ? "over" : "too early");
    join(t);
    assert(fgetwc(file) == L'x' && fgetwc(file) == L'b');
}

CASE(an_error_is_written_past_a_stream_that_is_new, "x: Success/")
{
    over_memory(stderr, "");
    pthread_t t = start(keeps_until_told, NULL);
    sem_wait(&is_kept);
    errno = 0;
    perror("x");
    sem_post(&told);
    join(t);
    say_what_was_written();
}

CASE(an_end_is_forgotten, "1 0")
{
    over_memory(NULL, "");
    assert(fgetc(file) == EOF);
    say("%d ", feof(file) != 0);
    clearerr(file);
    say("%d", feof(file) != 0);
}

static void *writes_twice(void *letter)
{
    _IO_flockfile(file);
    fputc(*(char *)letter, file);
    point();
    assert(_IO_ftrylockfile(file) == 0);
    fputc(*(char *)letter, file);
    _IO_funlockfile(file);
    point();
    fputc(*(char *)letter, file);
    _IO_funlockfile(file);
    return NULL;
}

CASE(the_lock_by_its_old_names, "aaabbb", "bbbaaa")
{
    over_memory(NULL, "");
    beside(writes_twice, "a", writes_twice, "b");
    say_what_was_written();
}

static void *tries(void *arg)
{
    int result = _IO_ftrylockfile(file);
    say("%d", result != 0);
    if (result == 0)
        _IO_funlockfile(file);
    return arg;
}

CASE(who_tries_does_not_wait, "1", "0")
{
    over_memory(NULL, "");
    beside(keeps_writing, NULL, tries, NULL);
}

CONFORMANCE_MAIN
