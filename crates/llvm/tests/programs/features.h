// What the programs of these tests share: inputs, and expectations that something is an expression.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif
void heisen_input(void *address, size_t bytes, const char *name) __attribute__((weak));
void expect_expression(uint64_t line, uint64_t value) __attribute__((weak));
#ifdef __cplusplus
}
#endif
#define INPUT(x) ((void)(heisen_input && (heisen_input(&(x), sizeof(x), #x), 1)))
#define EXPECT(x) ((void)(expect_expression && (expect_expression(__LINE__, (uint64_t)(x)), 1)))
#define SHOW(x) do { uint64_t shown = (uint64_t)(x); EXPECT(shown); printf("%d %llx\n", __LINE__, (unsigned long long)shown); } while (0)
