// CGC_API: marks the symbols that libcgc_runtime exports. All others are hidden.
#pragma once

#define CGC_API [[gnu::visibility("default")]]
