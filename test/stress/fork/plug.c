/* plug.c - what the parent loads and unloads all the time: a library with TLS. */
static __thread int word;
int *plug_word(void);
int *plug_word(void) { return &word; }
