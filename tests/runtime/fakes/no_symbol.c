/* A library that is no plugin: it exports something else. */
int some_other_function(void) { return 1; }
