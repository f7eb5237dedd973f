// std::string of libstdc++, which is a template that the library has instantiated.
#include <string>

template class std::allocator<char>;
template class std::basic_string<char>;
