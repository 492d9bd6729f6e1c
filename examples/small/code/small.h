#pragma once
extern "C" int add(int a, int b);
extern "C" int multiply(int a, int b);
