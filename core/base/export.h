// Marks a symbol as exported from libtutti; all others are hidden.
#pragma once

#define TUTTI_API __attribute__((visibility("default")))
