// CGC_API: marks what libcgc_runtime exports. Everything else is hidden.
#pragma once

#define CGC_API [[gnu::visibility("default")]]
