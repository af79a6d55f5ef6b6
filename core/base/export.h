// Marks a symbol as exported from libtutti; all others are hidden.
#pragma once

#ifndef _WIN32
#define TUTTI_API __attribute__((visibility("default")))
#elif defined(TUTTI_BUILDING_ENGINE)
#define TUTTI_API __declspec(dllexport)
#else
#define TUTTI_API
#endif
