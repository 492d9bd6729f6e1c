#pragma once

long twice(long number);
