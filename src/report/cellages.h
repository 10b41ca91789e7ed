/*
 * How old what cells of the merged tree hold is: the classes of all traces below a cell, added up. Made of a view once,
 * when somebody asks first, in time linear in its traces, nodes and classes; each question then looks only at what
 * lies on the way to the cells asked for. Inside of a report only; report_cells_held is what others call.
 */
#ifndef HEAPTOP_REPORT_CELLAGES_H
#define HEAPTOP_REPORT_CELLAGES_H

struct cell_ages;

void cell_ages_destroy(struct cell_ages *ages);	/* accepts NULL */

#endif
