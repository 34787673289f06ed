// Cutting a text as GPT-2 does before byte pairs are merged: words with the blank before them, numbers, other signs,
// and blanks.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace weft::data {

/// The length of the piece that `text`, which is not empty, starts with. It is the first alternative that fits of
///   's 't 're 've 'm 'll 'd | blank? letters | blank? numbers | blank? others | spaces, but the last one before
///   something else | spaces
/// where blank is U+0020, letters and numbers are Unicode's classes L and N, and spaces its White_Space (Radford et
/// al., "Language Models are Unsupervised Multitask Learners", 2019, and its published code). A byte that is no UTF-8
/// counts as an other sign.
size_t next_piece(std::string_view text);

/// All pieces of a text; together they are the text.
std::vector<std::string_view> pieces(std::string_view text);

}  // namespace weft::data
