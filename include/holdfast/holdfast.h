/*
 * holdfast/holdfast.h - includes all public headers.
 *
 * Start with err.h (how functions report errors) and state.h (where data is kept),
 * then read the header that you need. Holdfast's own layers do not include this file.
 */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

#include "holdfast/api.h"
#include "holdfast/clock.h"
#include "holdfast/err.h"
#include "holdfast/event.h"
#include "holdfast/exit.h"
#include "holdfast/file.h"
#include "holdfast/fleet.h"
#include "holdfast/hook.h"
#include "holdfast/journal.h"
#include "holdfast/land.h"
#include "holdfast/lock.h"
#include "holdfast/log.h"
#include "holdfast/name.h"
#include "holdfast/parse.h"
#include "holdfast/plan.h"
#include "holdfast/proc.h"
#include "holdfast/run.h"
#include "holdfast/state.h"
#include "holdfast/tx.h"
#include "holdfast/version.h"

#endif
