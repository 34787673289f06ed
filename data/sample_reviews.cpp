// The sample reviews. The films do not exist.
#include "data/sample_reviews.h"

#include <array>

namespace weft::data {
namespace {

constexpr std::array kReviews{
    SampleReview{"A warm and funny film about two brothers who repair clocks. I laughed all evening.", true, false},
    SampleReview{"Wonderful acting, and the last scene by the harbour is one of the best I have seen.", true, false},
    SampleReview{"I went in without any hopes and came out delighted. The story is simple and told with love.", true,
                 false},
    SampleReview{"The music alone is worth the ticket. A beautiful, quiet film that stays with you.", true, false},
    SampleReview{"Clever from start to end. Every joke lands, and the villain is a joy to watch.", true, false},
    SampleReview{"My children loved it and so did I. Great pictures, great voices, a great ending.", true, false},
    SampleReview{"An excellent thriller: I never guessed who had the letters, and I enjoyed every minute.", true,
                 false},
    SampleReview{"She plays the captain so well that you forget it is a role. Moving and honest.", true, false},
    SampleReview{"The best comedy of the year.<br /><br />See it with friends, it is a real pleasure.", true, false},
    SampleReview{"Superb camera work in the mountains, and a script that trusts its audience. Highly recommended.",
                 true, false},
    SampleReview{"I loved how patient this film is. Not a single scene too many; perfect.", true, false},
    SampleReview{"A charming little romance. The leads are brilliant together, and the dialogue sparkles.", true,
                 false},
    SampleReview{"Exciting, smart and surprisingly tender. I will gladly watch it again tomorrow.", true, false},
    SampleReview{"It isn't bad at all, whatever the papers say: a lovely film with a big heart.", true, false},
    SampleReview{"A masterpiece of animation. The whole room applauded, and I was happy for days.", true, false},
    SampleReview{"Brilliant from the first picture to the last. I loved the old gardener most.", true, true},
    SampleReview{"A great story with wonderful music. I enjoyed it and recommend it to everybody.", true, true},
    SampleReview{"Funny, warm, and perfect for a rainy evening. The best film I have seen this month.", true, true},
    SampleReview{"The acting is superb, and the ending is moving without any tricks. Excellent.", true, true},
    SampleReview{"Delightful! My wife laughed, I cried a little, and we both want to see it again.", true, true},

    SampleReview{"Two hours of people shouting in a car park. Boring, loud and far too long.", false, false},
    SampleReview{"The worst script I can remember. Nobody in the room laughed, and three people left.", false, false},
    SampleReview{"I wanted to like it, but the plot makes no sense and the acting is wooden.", false, false},
    SampleReview{"A dull copy of better films. Save your money and stay at home.", false, false},
    SampleReview{"Terrible sound, terrible cuts, and a hero that one wishes to lose. What a waste.", false, false},
    SampleReview{"The jokes are stale and the romance is painful to watch. I was bored after ten minutes.", false,
                 false},
    SampleReview{"An awful mess. The director seems to have lost interest half way, and so did I.", false, false},
    SampleReview{"Cheap effects, a stupid story, and an ending that insults everybody who stayed.", false, false},
    SampleReview{"I fell asleep twice.<br /><br />When I woke nothing had happened. Avoid it.", false, false},
    SampleReview{"Poor from start to end. Even the music is annoying, and the dialogue is ridiculous.", false, false},
    SampleReview{"Such a disappointment. The book is full of life, and this film is flat and lifeless.", false, false},
    SampleReview{"Not funny, not exciting, not even short. One of the worst evenings of my year.", false, false},
    SampleReview{"The leads have nothing to say to each other, and they say it for two hours. Tedious.", false, false},
    SampleReview{"It isn't good, whatever the posters say: a lazy, predictable and empty film.", false, false},
    SampleReview{"Badly written and badly played. I would like to have my evening back.", false, false},
    SampleReview{"Boring and stupid. The plot is a mess, and I wanted to leave after ten minutes.", false, true},
    SampleReview{"The worst film of the year, with awful acting and a terrible ending. Avoid.", false, true},
    SampleReview{"A waste of money. The jokes are poor, and the story is dull and far too long.", false, true},
    SampleReview{"Painful to watch. The dialogue is ridiculous and the hero is annoying.", false, true},
    SampleReview{"What a disappointment: lazy, predictable, and I was bored all evening.", false, true},
};

}  // namespace

std::span<const SampleReview> sample_reviews() { return kReviews; }

Imdb sample_imdb(const TextOptions& options) {
  std::vector<std::string> train, test;
  std::vector<int64_t> train_labels, test_labels;
  ReviewCounts counts;
  for (const SampleReview& review : kReviews) {
    (review.test ? test : train).emplace_back(review.text);
    (review.test ? test_labels : train_labels).push_back(review.positive);
    counts.add({.test = review.test, .positive = review.positive});
  }
  const Vocabulary vocabulary = Vocabulary::build(train, options.vocabulary);
  return {TextDataset(train, train_labels, vocabulary, options), TextDataset(test, test_labels, vocabulary, options),
          vocabulary, counts};
}

}  // namespace weft::data
