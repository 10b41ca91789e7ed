/*
 * While the screen is open, what anything in this process writes to descriptor 2 would spoil it:
 * it goes to the log instead (shown by `!`).
 */
#ifndef HEAPTOP_UI_STDERR_H
#define HEAPTOP_UI_STDERR_H

struct stderr_log;

struct stderr_log *stderr_log_begin(void);	/* NULL if it can't be done */
void stderr_log_end(struct stderr_log *s);	/* accepts NULL; descriptor 2 as before */
int stderr_log_fd(const struct stderr_log *s);	/* to poll, -1 for NULL */
void stderr_log_read(struct stderr_log *s);

#endif
