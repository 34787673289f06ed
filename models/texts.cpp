// The table of models of texts.
#include "models/texts.h"

#include "models/text_cnn.h"
#include "models/text_lstm.h"
#include "models/text_transformer.h"
#include "tensor/find_named.h"

namespace weft::models::texts {

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {"cnn", "words of 300 numbers, one convolution, the maximum over time: 6.3 million parameters", 3, 1e-3, false,
       [](const Options& o) -> std::unique_ptr<nn::Module> {
         return std::make_unique<TextCnn>(TextCnn::Options{.vocabulary = o.vocabulary, .sparse = o.sparse_embeddings});
       }},
      {"lstm", "an LSTM in both directions: 2.7 million parameters", 4, 3e-3, true,
       [](const Options& o) -> std::unique_ptr<nn::Module> {
         return std::make_unique<TextLstm>(
             TextLstm::Options{.vocabulary = o.vocabulary, .sparse = o.sparse_embeddings});
       }},
      {"transformer", "two layers of attention: 2.9 million parameters", 4, 1e-3, true,
       [](const Options& o) -> std::unique_ptr<nn::Module> {
         return std::make_unique<TextTransformer>(TextTransformer::Options{
             .vocabulary = o.vocabulary, .length = o.max_length, .sparse = o.sparse_embeddings});
       }},
  };
  return entries;
}

const Entry& find(std::string_view name) { return find_named(table(), name, "models", "model of texts"); }

}  // namespace weft::models::texts
