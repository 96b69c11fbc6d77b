#include "tests/lib/test.h"
