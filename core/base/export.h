// What libtutti exports: everything else in it is hidden.
#pragma once

#define TUTTI_API __attribute__((visibility("default")))
